/** CMC structures for tests, made of the DER writer and node:crypto; one of every supported control. */
import { sign } from 'node:crypto';
import type { ControlName, ControlValue } from '../../../src/pki/cmc/controls.ts';
import {
  bitString,
  contextConstructed,
  explicit,
  integer,
  oid,
  parseDer,
  printableString,
  sequence,
  tlv,
  utf8String,
} from '../../../src/pki/der/der.ts';
import { encodeExtensions, type Extension } from '../../../src/pki/x509/extensions.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { ALGORITHM, buildCsr, makeKey, type TestKey, usualAlgorithm, WITHOUT_HASH } from '../../support/csr.ts';

const issuer = parseDistinguishedName('CN=Issuing CA,O=Example');
const sha256 = { oid: OID.sha256 };
const hmacWithSHA256 = { oid: OID.hmacWithSHA256 };
const witness = { keyAlgorithm: sha256, macAlgorithm: hmacWithSHA256, witness: Buffer.alloc(32, 7) };
const status: ControlValue<'statusInfoV2'> = {
  status: 'failed',
  bodyList: [1, [2, 3]],
  statusString: 'né',
  otherInfo: { failInfo: 'badRequest' },
};

/** A value for each supported control. */
export const CONTROL_VALUES: { readonly [N in ControlName]: ControlValue<N> } = {
  statusInfo: {
    status: 'pending',
    bodyList: [4_294_967_295],
    otherInfo: { pendInfo: { pendToken: Buffer.from('token'), pendTime: new Date('2026-11-21T05:00:00Z') } },
  },
  identification: 'device 7',
  identityProof: Buffer.alloc(20, 1),
  dataReturn: Buffer.from('state'),
  transactionId: '00deadbeefdeadbeefdeadbeef',
  senderNonce: Buffer.from('sender'),
  recipientNonce: Buffer.from('recipient'),
  lraPOPWitness: { pkiDataBodyid: 0, bodyIds: [1, 2] },
  getCert: {
    issuerName: { kind: 'other', tag: contextConstructed(4), der: explicit(4, issuer.der) },
    serialNumber: 'ff01',
  },
  getCRL: {
    issuerName: issuer,
    crlName: { kind: 'uri', value: 'http://a.example/crl' },
    time: new Date('2026-11-21T05:00:00Z'),
    reasons: bitString(Buffer.of(0x40), 6),
  },
  revokeRequest: {
    issuer,
    serialNumber: '8001',
    reason: 'keyCompromise',
    invalidityDate: new Date('2026-11-20T00:00:00Z'),
    sharedSecret: Buffer.from('revoke me'),
    comment: 'lost',
  },
  regInfo: Buffer.from('registration'),
  queryPending: Buffer.from('token'),
  popLinkRandom: Buffer.alloc(64, 3),
  confirmCertAcceptance: { issuer, serialNumber: '0a' },
  statusInfoV2: status,
  batchRequests: [6, 7],
  batchResponses: [8],
  controlProcessed: [1, [2, 3]],
  identityProofV2: witness,
  raIdentityWitness: [4, 5],
};

export interface CrmfOptions {
  readonly certReqId?: number;
  readonly subject?: string;
  readonly extensions?: readonly Extension[];
  /** DER of each AttributeTypeAndValue. */
  readonly controls?: readonly Buffer[];
  /** Further fields of the template, before the subject. */
  readonly before?: readonly Buffer[];
  /** In place of the fields subject and publicKey. */
  readonly fields?: readonly Buffer[];
  /** In place of the signature; null leaves the proof of possession out. */
  readonly popo?: Buffer | null;
  readonly regInfo?: Buffer;
  /** Signs this in place of the CertRequest. */
  readonly signed?: Buffer;
  /** In place of SHA-256. */
  readonly hash?: 'sha384';
}

/** DER CertReqMsg of a key that signs. */
export function buildCrmf(key: TestKey, options: CrmfOptions = {}): Buffer {
  const { certReqId = 1, subject = 'CN=crmf', extensions, controls, before = [], popo, regInfo } = options;
  const fields = options.fields ?? [
    explicit(5, parseDistinguishedName(subject).der),
    tlv(contextConstructed(6), parseDer(key.spki).value),
  ];
  const template = sequence(
    ...before,
    ...fields,
    ...(extensions === undefined ? [] : [tlv(contextConstructed(9), parseDer(encodeExtensions(extensions)).value)]),
  );
  const certReq = sequence(integer(certReqId), template, ...(controls === undefined ? [] : [sequence(...controls)]));
  const hash = WITHOUT_HASH.has(key.privateKey.asymmetricKeyType) ? null : (options.hash ?? 'sha256');
  const signature = sign(hash, options.signed ?? certReq, key.privateKey);
  const algorithm = options.hash === undefined ? usualAlgorithm(key) : ALGORITHM.ecdsaSha384;
  const proof = popo === null ? [] : [popo ?? tlv(contextConstructed(1), algorithm, bitString(signature))];
  return sequence(certReq, ...proof, ...(regInfo === undefined ? [] : [regInfo]));
}

/** A regInfo of CRMF. */
export const REG_INFO = sequence(sequence(oid('1.3.6.1.5.5.7.5.2.1'), utf8String('a?b%')));

/** A request of either kind and one of neither. */
export function sampleRequests(): readonly [
  { readonly kind: 'tcr'; readonly bodyPartID: number; readonly der: Buffer },
  { readonly kind: 'crm'; readonly bodyPartID: number; readonly der: Buffer },
  { readonly kind: 'orm'; readonly bodyPartID: number; readonly type: string; readonly der: Buffer },
] {
  return [
    { kind: 'tcr', bodyPartID: 1, der: buildCsr(makeKey()) },
    { kind: 'crm', bodyPartID: 2, der: buildCrmf(makeKey(), { certReqId: 2 }) },
    { kind: 'orm', bodyPartID: 3, type: '1.2.3.4', der: printableString('other') },
  ];
}
