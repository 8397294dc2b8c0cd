/** CMC messages: the whole way through their readers, part by part, whether or not a signature is right. */
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import {
  buildControl,
  isControlName,
  KEYED_WITNESS,
  parseControl,
  type ControlName,
} from '../../../src/pki/cmc/controls.ts';
import { verifyIdentityProof, verifyPopLinkWitness } from '../../../src/pki/cmc/identity-proof.ts';
import {
  buildPkiData,
  parsePkiData,
  type TaggedAttribute,
  type TaggedContentInfo,
  buildPkiResponse,
  parsePkiResponse,
} from '../../../src/pki/cmc/pki-data.ts';
import { readContent, readEnvelope, readableRequests } from '../../../src/cmc/message.ts';
import { CmcRefusal } from '../../../src/cmc/refusal.ts';
import {
  requestOfSigner,
  parseCertificateRequest,
  verifyProofOfPossession,
  type CmcCertificateRequest,
} from '../../../src/pki/cmc/tagged-request.ts';
import { parseAuthenticatedData } from '../../../src/pki/cms/authenticated-data.ts';
import { berToDer } from '../../../src/pki/der/ber.ts';
import {
  parseContentInfo,
  parseSignedData,
  verifySignerInfo,
  buildSignedData,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import { DerError, explicit, integer, oid, sequence, setOf, tlv } from '../../../src/pki/der/der.ts';
import { encodeSubjectKeyIdentifier } from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { buildCrmf, CONTROL_VALUES } from '../../pki/cmc/samples.ts';
import { buildCsr, challengePassword, dns, extensionRequest, makeKey, san } from '../../support/csr.ts';
import { unlessRefused, type Target } from '../target.ts';
import { buildAuthenticatedData, createPopLinkWitness } from '../../support/cmc-secrets.ts';

const SECRET = { secret: Buffer.from('a shared secret'), identification: 'device' };
/** Nested messages deep enough for any batch of batches. */
const MAX_NESTING = 4;

const isRefusal = (error: unknown): boolean => error instanceof CmcError || error instanceof DerError;

/** As the server does; then on where it would have stopped. */
async function read(bytes: Buffer): Promise<void> {
  const message = await unlessRefused(
    () => readContent(readEnvelope(bytes)),
    (error) => isRefusal(error) || error instanceof CmcRefusal,
  );
  if (message !== undefined) readableRequests(message);
  await readContentInfo(berToDer(bytes), 0);
}

async function readContentInfo(der: Buffer, depth: number): Promise<void> {
  const { contentType } = parseContentInfo(der);
  if (contentType === OID.authenticatedData) {
    const data = parseAuthenticatedData(der);
    await readParts(data.contentType, data.content, depth);
    return;
  }
  const signed = parseSignedData(der);
  if (signed.content === undefined) return;
  const requests = await readParts(signed.contentType, signed.content, depth);
  const request = requestOfSigner(signed, requests);
  const [signer] = signed.signerInfos;
  if (request !== undefined && signer !== undefined) await verifySignerInfo(signed, signer, request.publicKey);
}

async function readParts(type: string, content: Buffer, depth: number): Promise<CmcCertificateRequest[]> {
  if (type === OID.pkiResponse) {
    const response = parsePkiResponse(content);
    for (const attribute of response.controlSequence) readControl(attribute);
    await readNested(response.cmsSequence, depth);
    return [];
  }
  const data = parsePkiData(content);
  const requests: CmcCertificateRequest[] = [];
  for (const tagged of data.reqSequence) {
    if (tagged.kind === 'orm') continue;
    const request = parseCertificateRequest(tagged);
    verifyPopLinkWitness(request, Buffer.alloc(64, 3), SECRET);
    await verifyProofOfPossession(request);
    requests.push(request);
  }
  for (const attribute of data.controlSequence) readControl(attribute, data.reqSequenceBytes);
  await readNested(data.cmsSequence, depth);
  return requests;
}

function readControl(attribute: TaggedAttribute, reqSequence?: Buffer): void {
  const control = parseControl(attribute);
  if (control.name === 'identityProofV2' && reqSequence !== undefined)
    verifyIdentityProof(control, reqSequence, SECRET);
}

async function readNested(parts: readonly TaggedContentInfo[], depth: number): Promise<void> {
  if (depth >= MAX_NESTING) return;
  for (const { contentInfo } of parts) await readContentInfo(contentInfo, depth + 1);
}

/** One message of every kind, with every control and every kind of request. */
async function seeds(): Promise<Buffer[]> {
  const key = makeKey();
  const identifier = subjectKeyIdentifier(key.spki);
  const ski = { oid: OID.subjectKeyIdentifier, critical: false, value: encodeSubjectKeyIdentifier(identifier) };
  const witness = createPopLinkWitness(Buffer.alloc(64, 3), SECRET.secret);
  const sign = (contentType: string, content: Buffer): Promise<Buffer> =>
    buildSignedData({
      contentType,
      content,
      signers: [
        keySigner(key.privateKey, parsePublicKey(key.spki), {
          kind: 'subjectKeyIdentifier',
          keyIdentifier: identifier,
        }),
      ],
      signingTime: new Date(),
    });
  const names = Object.keys(CONTROL_VALUES).filter(isControlName);
  const control = (name: ControlName, i: number): TaggedAttribute => buildControl(100 + i, name, CONTROL_VALUES[name]);
  const csr = buildCsr(key, {
    attributes: [
      extensionRequest(san(dns('a.example'))),
      challengePassword('secret'),
      sequence(oid(OID.popLinkWitnessV2), setOf(KEYED_WITNESS.encode(witness))),
    ],
  });
  const validity = tlv(0xa4, explicit(0, tlv(0x17, Buffer.from('261121000000Z'))));
  const crmf = buildCrmf(key, { certReqId: 2, extensions: [ski], before: [validity] });
  const raVerified = buildCrmf(key, { certReqId: 3, popo: Buffer.of(0x80, 0) });
  const requests = buildPkiData({
    controlSequence: names.map(control),
    reqSequence: [
      { kind: 'tcr', bodyPartID: 1, der: csr },
      { kind: 'crm', bodyPartID: 2, der: crmf },
      { kind: 'crm', bodyPartID: 3, der: raVerified },
      { kind: 'orm', bodyPartID: 4, type: '1.2.3', der: integer(1) },
    ],
    otherMsgSequence: [{ bodyPartID: 5, type: '1.2.3', value: integer(1) }],
  });
  const small = await sign(
    OID.pkiData,
    buildPkiData({
      reqSequence: [{ kind: 'crm', bodyPartID: 2, der: crmf }],
      controlSequence: [buildControl(1, 'senderNonce', Buffer.from('nonce'))],
    }),
  );
  const batch = buildPkiData({
    controlSequence: [buildControl(1, 'batchRequests', [2])],
    cmsSequence: [{ bodyPartID: 2, contentInfo: small }],
  });
  const response = buildPkiResponse({
    controlSequence: names.map(control),
    cmsSequence: [{ bodyPartID: 1, contentInfo: small }],
  });
  return [
    small,
    await sign(OID.pkiData, requests),
    await sign(OID.pkiData, batch),
    await sign(OID.pkiResponse, response),
    await buildAuthenticatedData(OID.pkiData, requests, SECRET.secret),
    ...names.map((name, i) => buildPkiData({ controlSequence: [control(name, i)] })).map(unsigned),
  ];
}

/** SignedData without signatures, as an unsigned revocation comes. */
function unsigned(content: Buffer): Buffer {
  const encapsulated = sequence(oid(OID.pkiData), explicit(0, tlv(0x04, content)));
  return sequence(oid(OID.signedData), explicit(0, sequence(integer(3), setOf(), encapsulated, setOf())));
}

export const target: Target = { grammar: 'der', seeds, read, isRefusal };
