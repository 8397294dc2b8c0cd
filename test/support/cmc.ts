/** Full CMC from a client's side: requests in every envelope, and responses as OpenSSL and the parsers read them. */
import { createPrivateKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { expect } from 'vitest';
import { type CmcControl, parseControl } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, type PkiDataContent, parsePkiResponse } from '../../src/pki/cmc/pki-data.ts';
import type { CmcStatusInfo } from '../../src/pki/cmc/status-info.ts';
import { parseCertificate, parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import {
  parseSignedData,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
  type CmsSigner,
} from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import { ecdsaTwin } from './certificates.ts';
import { extension, makeKey, type TestKey } from './csr.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { section, type ClientIdentity, type Estuary } from './estuary.ts';
import type { Answer } from './https.ts';
import { openssl } from './openssl.ts';

/** The certificate of a client. */
export function certificateOf({ cert }: ClientIdentity): Certificate {
  const [certificate] = parsePemCertificates(cert);
  if (certificate === undefined) throw new Error('no certificate');
  return certificate;
}

/** The same client with the ECDSA twin of its certificate. */
export function twinOf(client: ClientIdentity): ClientIdentity {
  return { ...client, cert: encodePem('CERTIFICATE', ecdsaTwin(certificateOf(client).der)) };
}

/** Signs as the holder of a certificate. */
export function certified(client: ClientIdentity, sid?: 'subjectKeyIdentifier'): CmsSigner {
  const certificate = certificateOf(client);
  const keyIdentifier = certificate.subjectKeyIdentifier ?? Buffer.alloc(0);
  return keySigner(
    createPrivateKey(client.key),
    certificate.publicKey,
    sid === undefined ? issuerAndSerialNumber(certificate) : { kind: sid, keyIdentifier },
  );
}

/** Signs with the requested key (RFC 5272 §4.2): named by its key identifier. */
export function requestedKey({ privateKey, spki }: TestKey): CmsSigner {
  return keySigner(privateKey, parsePublicKey(spki), {
    kind: 'subjectKeyIdentifier',
    keyIdentifier: subjectKeyIdentifier(spki),
  });
}

/** The extension that a request signed with its own key has to carry. */
export const ownKeyIdentifier = ({ spki }: TestKey): Buffer =>
  extension(OID.subjectKeyIdentifier, octetString(subjectKeyIdentifier(spki)));

export interface RequestOptions {
  readonly certificates?: readonly Buffer[];
  readonly signers?: readonly CmsSigner[];
}

/** DER ContentInfo of a full PKI request. No signers: an unsigned one. */
export function fullRequest(
  data: Partial<PkiDataContent>,
  { certificates = [], signers = [] }: RequestOptions,
): Promise<Buffer> {
  return buildSignedData({
    contentType: OID.pkiData,
    content: buildPkiData(data),
    certificates,
    signers,
    signingTime: new Date(),
  });
}

/** A request signed by a client, with its certificate. */
export function requestBy(client: ClientIdentity, data: Partial<PkiDataContent>): Promise<Buffer> {
  return fullRequest(data, { signers: [certified(client)], certificates: [certificateOf(client).der] });
}

/** POST fullcmc. */
export function postCmc(server: Estuary, der: Buffer, client?: ClientIdentity, path = 'fullcmc'): Promise<Answer> {
  return server.est(path, {
    headers: { 'Content-Type': 'application/pkcs7-mime; smime-type=CMC-request' },
    body: der.toString('base64'),
    ...(client === undefined ? {} : { client }),
  });
}

export interface CmcReply {
  readonly status: number;
  readonly answer: Answer;
  readonly der: Buffer;
  readonly controls: readonly CmcControl[];
  readonly statuses: readonly CmcStatusInfo[];
  /** All certificates of the SignedData. */
  readonly certificates: readonly Certificate[];
  readonly crls: readonly Buffer[];
  /** DER ContentInfos of a batch. */
  readonly inner: readonly Buffer[];
}

/** Reads a response, and has OpenSSL verify it up to the root. */
export function readReply(server: Estuary, answer: Answer): CmcReply {
  expect(answer.headers['content-type']).toBe('application/pkcs7-mime; smime-type=CMC-response');
  expect(answer.headers['content-transfer-encoding']).toBe('base64');
  const der = Buffer.from(answer.text, 'base64');
  return { status: answer.status, answer, ...readResponse(server, der) };
}

/** The same for a response inside of another. */
export function readResponse(server: Estuary, der: Buffer): Omit<CmcReply, 'status' | 'answer'> {
  const root = join(server.dir, 'ca/root.pem');
  const content = openssl(['cms', '-verify', '-inform', 'DER', '-CAfile', root, '-purpose', 'any', '-binary'], der);
  const signed = parseSignedData(der);
  expect(signed.contentType).toBe(OID.pkiResponse);
  expect(signed.content?.equals(content)).toBe(true);
  const { controlSequence, cmsSequence } = parsePkiResponse(content);
  const controls = controlSequence.map(parseControl);
  return {
    der,
    controls,
    statuses: controls.flatMap((control) => (control.name === 'statusInfoV2' ? [control.value] : [])),
    certificates: signed.certificates.map(parseCertificate),
    crls: signed.crls,
    inner: cmsSequence.map(({ contentInfo }) => contentInfo),
  };
}

/** Sends a request and reads the response. */
export async function exchange(
  server: Estuary,
  der: Buffer | Promise<Buffer>,
  client?: ClientIdentity,
  path?: string,
): Promise<CmcReply> {
  return readReply(server, await postCmc(server, await der, client, path));
}

/** The end entities' certificates of a response. */
export const issuedBy = ({ certificates }: Pick<CmcReply, 'certificates'>): Certificate[] =>
  certificates.filter(({ isCa }) => !isCa);

/** Statuses in short: `failed badRequest [1]`. */
export function inShort({ statuses }: Pick<CmcReply, 'statuses'>): string[] {
  return statuses.map(({ status, bodyList, otherInfo }) => {
    const failInfo = otherInfo !== undefined && 'failInfo' in otherInfo ? ` ${otherInfo.failInfo}` : '';
    return `${status}${failInfo} ${JSON.stringify(bodyList)}`;
  });
}

/** The pendToken of a response. */
export function pendTokenOf({ statuses }: Pick<CmcReply, 'statuses'>): Buffer {
  for (const { otherInfo } of statuses)
    if (otherInfo !== undefined && 'pendInfo' in otherInfo) return otherInfo.pendInfo.pendToken;
  throw new Error('no pendInfo');
}

export interface CaKey {
  /** Paths. */
  readonly certificate: string;
  readonly key: string;
}

/** A certificate that a CA of the server's folder signs outside of the server, with these extension lines. */
export function issuedOutside(
  { dir }: Pick<Estuary, 'dir'>,
  ca: 'issuing' | 'lab' | CaKey,
  key: TestKey,
  subject: string,
  extensions: readonly string[],
  days = 30,
): ClientIdentity {
  const files =
    typeof ca === 'string' ? { certificate: join(dir, `ca/${ca}.pem`), key: join(dir, `ca/${ca}.key`) } : ca;
  const [request, config, pem] = ['outside.csr', 'outside.cnf', 'outside.key'].map((name) => join(dir, name));
  if (request === undefined || config === undefined || pem === undefined) throw new Error('no paths');
  writeFileSync(pem, key.pem);
  writeFileSync(config, ['[req]\ndistinguished_name=dn\n[dn]\n[ext]', ...extensions, ''].join('\n'));
  // `openssl req -x509` would do in one step, but takes no days in the past.
  openssl(['req', '-new', '-utf8', '-key', pem, '-subj', subject, '-config', config, '-out', request]);
  const cert = openssl([
    ...['x509', '-req', '-in', request, '-CA', files.certificate, '-CAkey', files.key, '-days', String(days)],
    ...['-set_serial', `0x${Date.now().toString(16)}0${Math.floor(Math.random() * 1e6)}`],
    ...['-extfile', config, '-extensions', 'ext'],
  ]).toString('latin1');
  return { cert, key: key.pem };
}

/** Extension lines of a registration authority's certificate. */
export const RA_EXTENSIONS = [
  'keyUsage=critical,digitalSignature',
  'extendedKeyUsage=clientAuth,1.3.6.1.5.5.7.3.28',
  'subjectKeyIdentifier=hash',
] as const;

/** A PKCS#10 as a part of a message. */
export const tcr = (bodyPartID: number, der: Buffer) => ({ kind: 'tcr' as const, bodyPartID, der });
/** A CRMF request as a part of a message. */
export const crm = (bodyPartID: number, der: Buffer) => ({ kind: 'crm' as const, bodyPartID, der });

/** What the tests of full CMC are run against: registration authorities of both kinds, and shared secrets. */
export interface CmcParticipants {
  readonly ra: ClientIdentity;
  readonly configuredRa: ClientIdentity;
}

export const SECRET = 'correct horse battery staple';
export const IDENTIFICATION = 'device 7';

/** Adds to a configuration: a configured RA, a shared secret, and what `more` does. Call it once for each server. */
export function withParticipants(more: (config: TomlTable, dir: string) => void = () => undefined): {
  readonly participants: CmcParticipants;
  readonly configure: (config: TomlTable, dir: string) => void;
} {
  let made: CmcParticipants | undefined;
  return {
    get participants() {
      if (made === undefined) throw new Error('not configured yet');
      return made;
    },
    configure: (config, dir) => {
      made ??= {
        ra: issuedOutside({ dir }, 'issuing', makeKey(), '/CN=RA 1', RA_EXTENSIONS),
        configuredRa: issuedOutside({ dir }, 'lab', makeKey(), '/CN=RA 2', RA_EXTENSIONS),
      };
      writeFileSync(join(dir, 'ra.pem'), made.configuredRa.cert);
      writeFileSync(join(dir, 'device-7.secret'), `${SECRET}\n`, { mode: 0o600 });
      const cmc = section(config, 'cmc');
      cmc['ra_certificates'] = ['ra.pem'];
      cmc['shared_secrets'] = [{ identification: IDENTIFICATION, secret_file: 'device-7.secret' }];
      more(config, dir);
    },
  };
}
