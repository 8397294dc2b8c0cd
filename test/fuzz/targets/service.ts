/**
 * A whole server: requests that get past TLS, passwords and signatures, so that what comes behind them is reached. An
 * input is SEQUENCE { INTEGER, content }: the integer says where it goes, and the content is signed anew: a
 * CertificationRequestInfo with the requested key, a PKIData by a registration authority.
 */
import { sign } from 'node:crypto';
import { badRequest } from '../../../src/errors.ts';
import { buildControl, isControlName } from '../../../src/pki/cmc/controls.ts';
import { buildPkiData } from '../../../src/pki/cmc/pki-data.ts';
import { parseSignedData, buildSignedData, issuerAndSerialNumber, keySigner } from '../../../src/pki/cms/cms.ts';
import { bitString, children, integer, parseDer, readInteger, sequence, Tag } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { buildCrmf, CONTROL_VALUES } from '../../pki/cmc/samples.ts';
import { extKeyUsage, keyUsage, makeCertificate } from '../../support/certificates.ts';
import { ALGORITHM } from '../../support/csr.ts';
import { requestedKey } from '../../support/cmc.ts';
import { ed25519, p256, testKey } from '../fixed-keys.ts';
import { startInProcess } from '../service-in-process.ts';
import { isClientError, isDerError, type Target } from '../target.ts';
import { target as csr } from './csr.ts';

const CSR = 'application/pkcs10';
const CMC = 'application/pkcs7-mime';
const keys = p256('csr');
const raKeys = ed25519('ra');
const ra = await makeCertificate({
  subject: 'CN=RA',
  kind: 'ed25519',
  keys: raKeys,
  serial: '01',
  extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.cmcRA, OID.clientAuth)],
});
const raCertificate = parseCertificate(ra.der);
const raSigner = keySigner(raKeys.privateKey, raCertificate.publicKey, issuerAndSerialNumber(raCertificate));
const service = await startInProcess(ra.der);

const signed = (info: Buffer): Buffer =>
  sequence(info, ALGORITHM.ecdsaSha256, bitString(sign('sha256', info, keys.privateKey)));

const message = (content: Buffer, signer = raSigner, certificates = [ra.der]): Promise<Buffer> =>
  buildSignedData({ contentType: OID.pkiData, content, certificates, signers: [signer], signingTime: new Date() });

const ROUTES: readonly { path: string; type: string; body: (content: Buffer) => Buffer | Promise<Buffer> }[] = [
  { path: 'simpleenroll', type: CSR, body: signed },
  { path: 'serverkeygen', type: CSR, body: signed },
  { path: 'lab/simpleenroll', type: CSR, body: signed },
  { path: 'fullcmc', type: CMC, body: (content) => message(content) },
  { path: 'lab/fullcmc', type: CMC, body: (content) => message(content) },
  { path: 'fullcmc', type: CMC, body: (content) => message(content, requestedKey(testKey(keys)), []) },
  { path: 'fullcmc', type: CMC, body: (content) => content },
  { path: 'simpleenroll', type: CSR, body: (content) => content },
];

async function read(input: Buffer): Promise<void> {
  const [operation, content] = children(parseDer(input, Tag.SEQUENCE).value);
  if (operation === undefined || content === undefined) throw badRequest('BODY_EMPTY', 'no request');
  const route = ROUTES[Math.abs(readInteger(operation)) % ROUTES.length];
  if (route === undefined) throw badRequest('BAD_PATH', 'no route');
  const { status, text } = await service.post(route.path, route.type, await route.body(content.raw));
  if (status >= 500 && status !== 501) throw new Error(`${route.path} answers ${status}: ${text.slice(0, 100)}`);
  if (status >= 400) throw badRequest('BAD_REQUEST', 'the server refuses');
  if (route.type === CMC) parseSignedData(Buffer.from(text, 'base64'));
}

/** To one route. */
const to = (route: number, content: Buffer): Buffer => sequence(integer(route), content);

async function seeds(): Promise<Buffer[]> {
  const requests = await csr.seeds();
  const infos = requests
    .slice(0, 6)
    .flatMap((der) => children(parseDer(der).value).slice(0, 1))
    .map(({ raw }) => raw);
  const names = Object.keys(CONTROL_VALUES).filter(isControlName);
  const key = testKey(keys);
  const tcr = { kind: 'tcr', bodyPartID: 1, der: requests[0] ?? Buffer.alloc(0) } as const;
  const crm = { kind: 'crm', bodyPartID: 2, der: buildCrmf(key, { certReqId: 2 }) } as const;
  const nonces = [
    buildControl(10, 'transactionId', '00aa'),
    buildControl(11, 'senderNonce', Buffer.from('nonce')),
    buildControl(12, 'dataReturn', Buffer.from('back')),
  ];
  const inner = await message(buildPkiData({ reqSequence: [crm] }), requestedKey(key), []);
  const contents = [
    buildPkiData({ reqSequence: [tcr] }),
    buildPkiData({ reqSequence: [tcr, crm], controlSequence: nonces }),
    buildPkiData({
      controlSequence: [buildControl(1, 'batchRequests', [2])],
      cmsSequence: [{ bodyPartID: 2, contentInfo: inner }],
    }),
    ...names.map((name, i) =>
      buildPkiData({ reqSequence: [tcr], controlSequence: [buildControl(100 + i, name, CONTROL_VALUES[name])] }),
    ),
  ];
  return [
    ...infos.flatMap((info) => [0, 1, 2].map((route) => to(route, info))),
    ...contents.flatMap((content, i) => [to(3, content), ...(i < 3 ? [to(4, content), to(5, content)] : [])]),
    to(6, await message(contents[0] ?? Buffer.alloc(0))),
    to(7, requests[6] ?? Buffer.alloc(0)),
  ];
}

export const target: Target = {
  grammar: 'der',
  // A message of CMC may hold a hundred requests, each with signatures to check and to make.
  milliseconds: 1500,
  seeds,
  read,
  isRefusal: (error) => isClientError(error) || isDerError(error),
  stop: service.stop,
};
