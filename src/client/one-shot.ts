/** Single EST operations that store nothing: for people, scripts, and keys stored elsewhere. */
import { InputError } from '../pki/input-error.ts';
import { parsePem } from '../pki/der/pem.ts';
import { OID } from '../pki/der/oids.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { parseBasicConstraints } from '../pki/x509/extensions.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { describe } from '../errors.ts';
import { ClientError } from './client-error.ts';
import type { EstOperations } from './context.ts';
import { bindingOf, checkIssued, csrFor } from './enrollment.ts';
import type { ClientIdentity } from './http/connection.ts';
import type { EnrollmentOperation, MakeCsr, ServerKey } from './http/est-server.ts';
import { passwordOf } from './password.ts';
import { makeCsr, type PrivateKey } from './request/csr.ts';
import { planRequest, type Wanted } from './request/demands.ts';
import { type ClientTask, withFirstServer } from './servers.ts';
import { requireTokenKey } from './token/keys.ts';
import { presentChain, refreshTrust } from './trust/establish.ts';
import type { CaCertificates } from './trust/anchors.ts';

export interface OneShot extends ClientTask {
  readonly identity: ClientIdentity | undefined;
}

export type IssuedAnswer =
  | {
      readonly kind: 'issued';
      readonly certificate: Certificate;
      readonly chain: readonly Certificate[];
      /** PKCS #8 PEM of a server-generated key. */
      readonly privateKey: string | undefined;
    }
  | { readonly kind: 'pending'; readonly retryAfter: number };

/** Connects to the authenticated server. @param work also receives the passwords that were sent @throws ClientError */
export async function withServer<T>(
  shot: OneShot,
  work: (server: EstOperations, cas: CaCertificates, sent: readonly string[]) => Promise<T>,
): Promise<T> {
  const { config, context, identity } = shot;
  const task = { ...shot, config: { ...config, name: 'client' } };
  await requireTokenKey(identity, context);
  const sent: string[] = [];
  const password = passwordOf(config, context);
  const noted = async (): Promise<string | undefined> => {
    sent.push(...[(await password?.()) ?? []].flat());
    return sent.at(-1);
  };
  return withFirstServer(task, { identity, password: password && noted }, async (server) => {
    const cas = await refreshTrust(server, task, identity);
    if (identity !== undefined) await presentChain(server, task, identity, cas);
    return work(server, cas, sent);
  });
}

/** A request that can be sent repeatedly. */
export interface ReadyRequest {
  readonly csr: MakeCsr;
  /** DER of the key that the certificate must have. */
  readonly spki: Buffer;
  readonly isForCa: boolean;
}

/**
 * Creates a request per /csrattrs.
 * @param keyOf the key, given the CA's preferred type
 * @param attributes DER of additional attributes
 * @throws ClientError
 */
export async function requestWith(
  keyOf: (keyType: string) => Promise<PrivateKey>,
  wanted: Wanted,
  { config }: OneShot,
  server: EstOperations,
  attributes: readonly Buffer[] = [],
): Promise<ReadyRequest> {
  const asked = planRequest(await server.csrAttributes(), wanted);
  const key = await keyOf(asked.keyType);
  const plan = key.publicKey.keyType === asked.keyType ? asked : { ...asked, signatureAlgorithm: undefined };
  const csr = (await makeCsr(plan, key, attributes)).toString('base64');
  const binding = bindingOf(plan, config);
  return { csr: (value) => csrFor({ csr, binding }, key, value), spki: key.publicKey.spki, isForCa: false };
}

/** @param content PEM, base64 or DER of an existing request. @throws ClientError */
export function requestFrom(content: Buffer, where: string): ReadyRequest {
  try {
    const der = content[0] === 0x30 ? content : derOf(content.toString('latin1'));
    const { publicKey, extensions } = parseCsrWithoutProof(der);
    const constraints = extensions.find(({ oid }) => oid === OID.basicConstraints);
    const isForCa = constraints !== undefined && parseBasicConstraints(constraints.value).ca;
    return { csr: () => Promise.resolve(der), spki: publicKey.spki, isForCa };
  } catch (error) {
    throw new ClientError('local', 'FILES_UNUSABLE', `${where} is not a usable CSR: ${describe(error)}`, {
      cause: error,
    });
  }
}

function derOf(text: string): Buffer {
  if (!text.includes('-----BEGIN ')) return Buffer.from(text, 'base64');
  const block = parsePem(text).find(({ label }) => label.endsWith('CERTIFICATE REQUEST'));
  if (block === undefined) throw new InputError('it contains no CERTIFICATE REQUEST');
  return block.der;
}

/**
 * Sends the request. @param open converts the key part of a serverkeygen response to PKCS #8 PEM. @throws ClientError
 */
export async function send(
  operation: EnrollmentOperation,
  { csr, spki, isForCa }: ReadyRequest,
  { context }: OneShot,
  server: EstOperations,
  cas: CaCertificates,
  open?: (key: ServerKey) => Promise<{ readonly pem: string; readonly spki: Buffer }>,
): Promise<IssuedAnswer> {
  const answer = await server.enroll(operation, csr);
  if (answer.kind === 'pending') return answer;
  const { certificate, serverKey } = answer;
  const opened = serverKey && (await open?.(serverKey));
  const chain = await checkIssued(certificate, opened?.spki ?? spki, cas, context.now(), isForCa);
  return { kind: 'issued', certificate, chain, privateKey: opened?.pem };
}
