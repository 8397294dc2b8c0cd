/** One attempt at a certificate: trust, CSR attributes, request, response and files. */
import { OID, oidName } from '../pki/der/oids.ts';
import { parseCsr, type Csr } from '../pki/pkcs10/csr.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName, parseGeneralNames, sameGeneralNames, type GeneralName } from '../pki/x509/general-name.ts';
import { formatName, namesMatch } from '../pki/x509/name.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { ClientContext, EstOperations } from './context.ts';
import { type ChosenIdentity, chooseIdentity, expiredIdentity } from './identity.ts';
import type { EnrollmentAnswer } from './http/est-server.ts';
import { type CertificateFolder, type LiveCertificate, passwordFile } from './keep/certificate-folder.ts';
import { filesOf } from './keep/formats.ts';
import type { PendingRequest } from './keep/state.ts';
import { freshPassword, isStored, passwordOf, spentRecord } from './password.ts';
import {
  bindCsr,
  makeCsr,
  makePrivateKey,
  makeTokenKey,
  openPrivateKey,
  type PrivateKey,
  readPrivateKey,
  requestKey,
  tlsClientProblem,
  wantedOf,
} from './request/csr.ts';
import { planRequest, type RequestPlan, type Wanted } from './request/demands.ts';
import { type ClientTask, withFirstServer } from './servers.ts';
import { isKeyUri } from './token/key-uri.ts';
import { requireTokenKey } from './token/keys.ts';
import type { TokenKeys } from './token/token.ts';
import { refreshTrust } from './trust/establish.ts';
import { findPath } from './trust/path.ts';
import type { CaCertificates } from './trust/anchors.ts';

/** The task of a certificate, whose folder also has its trusted CAs. */
type Task = ClientTask & { readonly store: CertificateFolder };

interface AttemptOptions {
  /** Enrolls with the initial credentials and the configured names, even if there is a certificate. */
  readonly anew: boolean;
  /** RFC 7030 §4.2.3 forbids repeating the pending request before. */
  readonly notBefore: number;
}

/**
 * Renews with the current certificate, or enrolls with the initial credentials. An expired certificate is the second
 * choice, because only some servers accept it.
 */
export async function attemptEnrollment(task: Task, options: AttemptOptions): Promise<EnrollmentAnswer> {
  const { config, store: folder, context } = task;
  const { anew } = options;
  const live = folder.live();
  const now = context.now();
  const attempt = (identity: ChosenIdentity): Promise<EnrollmentAnswer> => attemptWith(identity, task, options);
  const current = chooseIdentity(config, anew ? undefined : live, now, context);
  if (current.renews !== undefined || live === undefined || anew) return attempt(current);
  const expired = expiredIdentity(config, live, now, context);
  const ways: ChosenIdentity[] = (await hasFirstCredentials(task, current)) ? [current] : [];
  // The response to a renewal may have got lost just before the expiry.
  if (folder.pending()?.operation === 'simplereenroll') ways.unshift(...expired);
  else ways.push(...expired);
  const [way, other] = ways;
  if (way === undefined) throw cannotRenew(live.certificate, config);
  try {
    return await attempt(way);
  } catch (error) {
    const isRejected = error instanceof ClientError && (error.kind === 'unauthenticated' || error.kind === 'refused');
    if (!isRejected) throw error;
    if (other !== undefined) return attempt(other);
    if (way === current) throw error;
    const { message, retryAfter } = error;
    const more = { retryAfter, cause: error };
    const text = `${message}; ${cannotRenew(live.certificate, config).message}`;
    throw new ClientError('unauthenticated', 'CREDENTIALS_MISSING', text, more);
  }
}

async function hasFirstCredentials(
  { config, store: folder, context }: Task,
  { identity }: ChosenIdentity,
): Promise<boolean> {
  if (identity !== undefined || config.kerberos || config.token_file !== undefined) return true;
  const { operation } = folder.pending() ?? {};
  const password =
    operation === 'simpleenroll'
      ? passwordOf(config, context)
      : freshPassword(config, context, folder.spentPasswords());
  return password !== undefined && (!isStored(config) || (await password()) !== undefined);
}

async function attemptWith(
  { identity, renews }: ChosenIdentity,
  task: Task,
  { anew, notBefore }: AttemptOptions,
): Promise<EnrollmentAnswer> {
  const { config, store: folder, context } = task;
  const live = folder.live();
  const now = context.now();
  const wanted = wantedOf(config, renews);
  const operation = renews === undefined ? 'simpleenroll' : 'simplereenroll';
  const request = requestKey(config, wanted);
  const findPending = (): PendingRequest | undefined => {
    const former = folder.pending();
    return former?.operation === operation && former.request === request ? former : undefined;
  };
  const isRepeated = findPending() !== undefined;
  if (isRepeated && now < notBefore) return { kind: 'pending', retryAfter: Math.ceil((notBefore - now) / 1000) };
  // The password of a repeated request is already used.
  const mayRepeat = anew || (isRepeated && operation === 'simpleenroll');
  const password = mayRepeat ? passwordOf(config, context) : freshPassword(config, context, folder.spentPasswords());
  let sent: string | undefined;
  await requireTokenKey(identity, context);
  const noted = password && (async (): Promise<string | undefined> => (sent = await password()));
  const begin = (base: URL): void => {
    context.log(
      'info',
      config.name,
      `${findPending() === undefined ? 'sends' : 'repeats'} ${operation} to ${base.href}`,
    );
  };
  return withFirstServer(task, { identity, password: noted, begin }, async (server) => {
    const cas = await refreshTrust(server, task, identity, live?.certificate);
    const former = live?.privateKey;
    const pending =
      findPending() ?? (await makePending(server, task, { operation, request, wanted, formerKey: former }));
    const key = await openPrivateKey(pending.privateKey, 'the pending request', tokenOf(config, context));
    const answer = await server.enroll(operation, (binding) => csrFor(pending, key, binding));
    if (answer.kind === 'issued') {
      // A client killed in between repeats the pending request, with the same password.
      if (sent !== undefined && !config.otp_reusable)
        folder.saveSpentPassword(spentRecord(sent, context.randomBytes(16)));
      await install(task, cas, { key, csr: pending.csr, former: live }, answer.certificate);
    }
    return answer;
  });
}

function cannotRenew(certificate: Certificate, config: CertificateConfig): ClientError {
  const problem = tlsClientProblem(certificate);
  const reason =
    problem === undefined
      ? `the certificate expired ${certificate.notAfter.toISOString()}`
      : `the certificate cannot authenticate its own renewal: ${problem}`;
  const remedies = [
    `Put a new one-time password into ${config.otp_file ?? config.otp_env ?? passwordFile(config)}`,
    'configure certificate and private_key or kerberos',
    ...(problem === undefined ? [] : ['have the CA issue certificates with clientAuth and digitalSignature']),
  ];
  return new ClientError(
    'local',
    'CREDENTIALS_MISSING',
    `${reason}, and no unused password is available. ${remedies.join(', or ')}`,
  );
}

interface NewRequest {
  readonly operation: PendingRequest['operation'];
  readonly request: string;
  readonly wanted: ReturnType<typeof wantedOf>;
  /** Of the certificate to renew: PEM, or a URI. */
  readonly formerKey: string | undefined;
}

async function makePending(
  server: EstOperations,
  task: Task,
  { operation, request, wanted, formerKey }: NewRequest,
): Promise<PendingRequest> {
  const { config, store: folder, context } = task;
  const given = config.key_file === undefined ? undefined : givenKey(config.key_file, context);
  const plan = planRequest(await server.csrAttributes(), forKey(wanted, given));
  const isKept = !config.new_key && formerKey !== undefined && isKeyUri(formerKey) === (config.key_store === 'token');
  const former = isKept ? await openPrivateKey(formerKey, 'the key', tokenOf(config, context)) : undefined;
  const key = given ?? (former?.publicKey.keyType === plan.keyType ? former : await makeKey(plan.keyType, task));
  return folder.savePending({
    operation,
    request,
    csr: (await makeCsr(plan, key)).toString('base64'),
    binding: bindingOf(plan, config),
    privateKey: key.text,
  });
}

export const givenKey = (file: string, { disk }: ClientContext): PrivateKey =>
  readPrivateKey(disk.read(file) ?? '', file);

/** A given key determines its type, whatever the CA prefers. */
export const forKey = (wanted: Wanted, key: PrivateKey | undefined): Wanted =>
  key === undefined ? wanted : { ...wanted, keyType: key.publicKey.keyType };

export function bindingOf({ binding }: RequestPlan, config: CertificateConfig): RequestPlan['binding'] {
  if (config.channel_binding === 'never') return undefined;
  return config.channel_binding === 'always' ? (binding ?? 'challengePassword') : binding;
}

const tokenOf = ({ token }: CertificateConfig, context: ClientContext): TokenKeys | undefined =>
  token && context.token(token);

async function makeKey(keyType: string, { config, store: folder, context }: Task): Promise<PrivateKey> {
  const { key_store: store, token, name } = config;
  if (store === 'file' || token === undefined) return makePrivateKey(keyType);
  const keys = context.token(token);
  // Reports a missing token or a refused PIN before anything is saved.
  await keys.list();
  const id = context.randomBytes(16).toString('hex');
  // Save the ID first, so that a killed process leaves no orphaned key.
  folder.saveTokenKeys([...folder.tokenKeys(), id]);
  return makeTokenKey(keys, token.label, keyType, id, name);
}

export async function csrFor(
  { csr, binding }: Pick<PendingRequest, 'csr' | 'binding'>,
  key: PrivateKey,
  value: Buffer | undefined,
): Promise<Buffer> {
  const der = Buffer.from(csr, 'base64');
  if (binding === undefined) return der;
  if (value === undefined)
    throw new ClientError(
      'later',
      'SERVER_UNAVAILABLE',
      'the connection has no channel binding, and the CA requires one',
    );
  return bindCsr(der, key, binding, value);
}

interface AnsweredRequest {
  readonly key: PrivateKey;
  /** DER in base64. */
  readonly csr: string;
  readonly former: LiveCertificate | undefined;
}

/**
 * Checks an issued certificate.
 * @param spki DER of the requested key
 * @param mayBeCa whether a CA certificate was requested
 * @returns the intermediates from its issuer up
 * @throws ClientError
 */
export async function checkIssued(
  certificate: Certificate,
  spki: Buffer,
  { anchors, intermediates }: CaCertificates,
  now: number,
  mayBeCa = false,
): Promise<readonly Certificate[]> {
  const refused = (reason: string): ClientError =>
    new ClientError('refused', 'ANSWER_INVALID', `the certificate is ${reason}`);
  if (!certificate.spki.equals(spki)) throw refused('for another key than the request');
  if (certificate.isCa && !mayBeCa) throw refused('a CA certificate, which was not requested');
  if (certificate.notAfter.getTime() <= now)
    throw new ClientError('local', 'CLOCK_WRONG', 'the new certificate has expired, or the clock is wrong');
  const path = await findPath(certificate, anchors, intermediates, Math.max(now, certificate.notBefore.getTime()));
  if (path === undefined)
    throw new ClientError('untrusted', 'CA_UNTRUSTED', 'the certificate does not lead to a trusted CA');
  return path.slice(1).filter(({ subject, issuer }) => !namesMatch(subject, issuer));
}

async function install(
  { config, store: folder, context }: Task,
  cas: CaCertificates,
  { key, csr, former }: AnsweredRequest,
  certificate: Certificate,
): Promise<void> {
  const now = context.now();
  const chain = await checkIssued(certificate, key.publicKey.spki, cas, now);
  const password =
    config.pkcs12_password_file === undefined
      ? ''
      : (context.disk.read(config.pkcs12_password_file) ?? '').replace(/\r?\n$/, '');
  const options = { formats: config.formats, password, name: config.name };
  folder.install(await filesOf({ certificate, chain, privateKey: key.text }, options), now);
  for (const difference of differences(certificate, parseCsr(Buffer.from(csr, 'base64')), former?.certificate))
    context.log('warning', config.name, difference);
}

/** Differences that may affect programs or the next renewal. */
function differences(certificate: Certificate, csr: Csr, former: Certificate | undefined): readonly string[] {
  const { subject, subjectAltNames, extKeyUsage } = certificate;
  const requested = csr.extensions.find(({ oid }) => oid === OID.subjectAltName);
  const names = requested === undefined ? [] : parseGeneralNames(requested.value);
  const shown = (list: readonly GeneralName[]): string => list.map(formatGeneralName).join(', ') || 'nothing';
  const lost = former?.extKeyUsage?.filter((purpose) => extKeyUsage?.includes(purpose) === false) ?? [];
  const problem = tlsClientProblem(certificate);
  return [
    ...(namesMatch(subject, csr.subject)
      ? []
      : [`the CA issued the subject "${formatName(subject)}", not "${formatName(csr.subject)}"`]),
    ...(sameGeneralNames(subjectAltNames, names)
      ? []
      : [`the CA issued the subjectAltName ${shown(subjectAltNames)}, not ${shown(names)}`]),
    ...(lost.length === 0 ? [] : [`the new certificate lacks the extended key usage ${lost.map(oidName).join(', ')}`]),
    ...(problem === undefined ? [] : [`the certificate cannot authenticate its own renewal: ${problem}`]),
  ];
}
