/**
 * What a Dogtag CA or KRA answers: JSON, HTML, PEM, PKCS #7 and CMC. An input is one answer to every call: a line with
 * status, content type and a cookie, then the body.
 */
import { createPrivateKey } from 'node:crypto';
import { RemoteChain } from '../../../src/ca/dogtag/chain.ts';
import { CmcService } from '../../../src/ca/dogtag/cmc.ts';
import { fetchCertificate, findRequestInfo, profileInputs, submitRequest } from '../../../src/ca/dogtag/enroll.ts';
import type { HttpAnswer } from '../../../src/https-client.ts';
import { readJson, ReplicaFault } from '../../../src/ca/dogtag/answers.ts';
import { Kra } from '../../../src/ca/dogtag/kra.ts';
import { issuesAtOnce } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { Replicas, type Attempt } from '../../../src/ca/dogtag/replicas.ts';
import { findRequest, revokeCertificate } from '../../../src/ca/dogtag/certificates.ts';
import { issuedProblem } from '../../../src/ca/remote/issued.ts';
import { buildPkiResponse } from '../../../src/pki/cmc/pki-data.ts';
import { buildControl } from '../../../src/pki/cmc/controls.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { buildSignedData, certsOnly, issuerAndSerialNumber, keySigner } from '../../../src/pki/cms/cms.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { unlessRefused, type Target } from '../target.ts';
import { hierarchy } from './certificates.ts';

const { root, issuing, client } = await hierarchy();
const ca = parseCertificate(issuing.der);
const wanted = parseCertificate(client.der);
const tls = { ca: '', cert: encodePem('CERTIFICATE', client.der), key: pkcs8Pem(client.keys) };

/** A server that says the same to everything. */
class Answering extends Replicas {
  readonly #attempt: Attempt;

  constructor(answer: HttpAnswer) {
    super({ ...SETTINGS, tls });
    const call = (): Promise<HttpAnswer> => Promise.resolve(answer);
    this.#attempt = { call, session: (work) => work(call) };
  }

  override read<T>(work: (replica: Attempt) => Promise<T>): Promise<T> {
    return work(this.#attempt);
  }

  override submit<T>(work: (replica: Attempt) => Promise<T>): Promise<T> {
    return work(this.#attempt);
  }
}

const SETTINGS = {
  urls: [],
  subsystem: 'ca',
  timeout: 1000,
  checkInterval: 1000,
  retryAfter: 1,
  log: { info: () => undefined, warn: () => undefined },
} as const;

/** A replica that gave no sensible answer, or a CA that refuses: both are told apart by code, and neither is `INTERNAL`. */
const isRefusal = (error: unknown): boolean => error instanceof ReplicaFault || error instanceof EstuaryError;

function answerIn(input: Buffer): HttpAnswer {
  const end = input.indexOf(0x0a);
  const [status = '', type = '', ...cookie] = input.toString('latin1', 0, Math.max(0, end)).split(' ');
  return {
    status: Number.parseInt(status, 10) || 0,
    headers: { 'content-type': type, 'set-cookie': [cookie.join(' ')] },
    body: input.subarray(end + 1),
  };
}

async function read(input: Buffer): Promise<void> {
  const answer = answerIn(input);
  const replicas = new Answering(answer);
  const attempt = <T>(work: () => Promise<T>): Promise<T | undefined> => unlessRefused(work, isRefusal);
  readJson(answer);
  await attempt(() => profileInputs(replicas, 'profile'));
  await attempt(() => findRequestInfo(replicas, '7'));
  await attempt(() => revokeCertificate(replicas, { serial: '01', reason: 'keyCompromise' }));
  const sought = { request_id: 'x', subject: wanted.subject, spki: wanted.spki, from: 0, until: 1 };
  await attempt(() => findRequest(replicas, sought, 'estuary'));
  const kra = new Kra(replicas, () => 0);
  await attempt(async () => kra.archive(await kra.seal(Buffer.from('key')), 'x'));
  const chain = new RemoteChain(undefined);
  await chain.refresh(replicas);
  const service = new CmcService({
    replicas,
    agent: { certificates: [wanted], privateKey: createPrivateKey(tls.key) },
    profile: 'profile',
    retryAfter: 1,
    chain: { certificate: chain.certificate ?? ca },
    label: 'dogtag',
    makeMutex: () => ({ acquire: () => Promise.resolve(() => undefined) }),
    now: () => 0,
  });
  await attempt(() => service.submit({ format: 'pkcs10', der: Buffer.alloc(0) }));
  const issued = await attempt(() => fetchCertificate(replicas, '0x1'));
  if (issued !== undefined) issuedProblem(issued, wanted, { key_usage: [], extended_key_usage: [] }, 0);
  await attempt(() => issuesAtOnce(replicas, 'profile'));
  const inputs = { requestClass: 'certReqInputImpl', requestorClass: undefined };
  await submitRequest(replicas, { profile: 'p', inputs, type: 'pkcs10', request: Buffer.alloc(0), requestor: 'x' });
}

async function seeds(): Promise<Buffer[]> {
  const json = (value: object, status = 200): Buffer =>
    Buffer.from(`${status} application/json JSESSIONID=1; Path=/ca\n${JSON.stringify(value)}`);
  const request = {
    requestURL: 'https://ca/ca/rest/certrequests/7',
    requestStatus: 'complete',
    certId: '0x1',
    errorMessage: '',
  };
  const attributes = [{ name: 'cert_request' }, { name: 'requestor_name', Value: 'estuary' }];
  const chain = certsOnly([root.der, issuing.der]).toString('base64');
  const status = buildControl(1, 'statusInfoV2', {
    status: 'failed',
    bodyList: [1],
    statusString: 'Request Rejected - x',
  });
  const message = await buildSignedData({
    contentType: OID.pkiResponse,
    content: buildPkiResponse({ controlSequence: [status] }),
    certificates: [client.der],
    signers: [keySigner(issuing.keys.privateKey, ca.publicKey, issuerAndSerialNumber(ca))],
    signingTime: new Date(0),
  });
  return [
    json({ entries: [request], total: 1 }),
    json(request),
    json({ Encoded: encodePem('CERTIFICATE', issuing.der), PKCS7CertChain: chain, Nonce: 9007199254740993 }),
    json({ Encoded: encodePem('CERTIFICATE', client.der), entries: [{ id: '0x1', requestID: '0x7' }] }),
    json({ Input: [{ ClassID: 'certReqInputImpl', Attribute: attributes }], operationResult: 'success', Nonce: '7' }),
    json({ RequestInfo: { requestStatus: 'complete', keyURL: 'https://kra/keys/5' }, status: 'active' }, 201),
    json({ ClassName: 'com.netscape.certsrv.base.RequestNotFoundException', Message: 'not found' }, 404),
    Buffer.from('500 text/html \n<html>'),
    Buffer.concat([Buffer.from('200 application/pkcs7-mime;x \n'), message]),
  ];
}

export const target: Target = {
  grammar: 'text',
  words: ['"entries":[', '"requestStatus":"', '"requestURL":"', '"Encoded":"', '"Nonce":', '"Input":', '200 ', '404 '],
  seeds,
  read,
  isRefusal,
};
