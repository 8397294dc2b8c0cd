/** One attempt at a certificate: trust, what the CA wants, the request, its answer, and the files that come of it. */
import { namesMatch } from '../pki/x509/name-matching.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig, ServerConfig } from './config/client-config.ts';
import type { ClientContext, EstOperations } from './context.ts';
import { chooseIdentity } from './identity.ts';
import { estBase, type EnrolmentAnswer } from './http/est-server.ts';
import type { CertificateFolder } from './keep/certificate-folder.ts';
import { filesOf } from './keep/formats.ts';
import type { PendingRequest } from './keep/state.ts';
import { passwordOf } from './password.ts';
import { bindCsr, makeCsr } from './request/csr.ts';
import { planRequest } from './request/demands.ts';
import { makePrivateKey, readPrivateKey, type PrivateKey } from './request/private-key.ts';
import { namesKey, wantedOf } from './request/wanted.ts';
import { establishTrust, refreshTrust } from './trust/establish.ts';
import { findPath } from './trust/path.ts';
import type { CaCertificates } from './trust/anchors.ts';

/**
 * @param anew with the first credentials and the names of the configuration, though there is a certificate
 * @throws ClientError
 */
export async function enrolOnce(
  config: CertificateConfig,
  serverConfig: ServerConfig,
  folder: CertificateFolder,
  context: ClientContext,
  anew: boolean,
): Promise<EnrolmentAnswer> {
  const live = folder.live();
  const now = context.now();
  const identity = chooseIdentity(config, anew ? undefined : live, now, context);
  const settings = {
    base: estBase(serverConfig.url, config.label),
    minVersion: serverConfig.min_version,
    maxVersion: serverConfig.max_version,
    timeout: serverConfig.timeout * 1000,
    credentials: {
      username: config.username,
      password: passwordOf(config, context),
      kerberos: config.kerberos,
    },
    now: () => context.now(),
    randomBytes: (count: number) => context.randomBytes(count),
  };
  const server = await establishTrust(settings, serverConfig, folder, context, identity.identity);
  try {
    const cas = await refreshTrust(
      server,
      serverConfig,
      folder,
      context,
      config.name,
      identity.identity,
      live?.certificate,
    );
    const wanted = wantedOf(config, identity.renews);
    const operation = identity.renews === undefined ? 'simpleenroll' : 'simplereenroll';
    const former = folder.pending();
    const kept = former?.operation === operation && former.names === namesKey(wanted) ? former : undefined;
    const pending =
      kept ?? (await makePending(server, config, folder, { operation, wanted, formerKey: live?.privateKey }));
    const key = readPrivateKey(pending.privateKey, 'the pending request');
    const answer = await server.enroll(operation, (binding) => csrFor(pending, key, binding));
    if (answer.kind === 'issued') await install(config, folder, context, cas, key, answer.certificate);
    return answer;
  } finally {
    server.close();
  }
}

interface NewRequest {
  readonly operation: PendingRequest['operation'];
  readonly wanted: ReturnType<typeof wantedOf>;
  /** PEM, of the certificate that is renewed. */
  readonly formerKey: string | undefined;
}

async function makePending(
  server: EstOperations,
  config: CertificateConfig,
  folder: CertificateFolder,
  { operation, wanted, formerKey }: NewRequest,
): Promise<PendingRequest> {
  const plan = planRequest(await server.csrAttributes(), wanted);
  const former = config.new_key || formerKey === undefined ? undefined : readPrivateKey(formerKey, 'key.pem');
  const key = former?.publicKey.keyType === plan.keyType ? former : await makePrivateKey(plan.keyType);
  const asked = config.channel_binding === 'always' ? (plan.binding ?? 'challengePassword') : plan.binding;
  return folder.savePending({
    operation,
    names: namesKey(wanted),
    csr: (await makeCsr(plan, key)).toString('base64'),
    binding: config.channel_binding === 'never' ? undefined : asked,
    privateKey: key.pem,
  });
}

async function csrFor({ csr, binding }: PendingRequest, key: PrivateKey, value: Buffer | undefined): Promise<Buffer> {
  const der = Buffer.from(csr, 'base64');
  if (binding === undefined) return der;
  if (value === undefined)
    throw new ClientError(
      'later',
      'SERVER_UNAVAILABLE',
      'the connection has no channel binding, and the CA asks for one',
    );
  return bindCsr(der, key, binding, value);
}

async function install(
  config: CertificateConfig,
  folder: CertificateFolder,
  context: ClientContext,
  { anchors, intermediates }: CaCertificates,
  key: PrivateKey,
  certificate: Certificate,
): Promise<void> {
  if (!certificate.spki.equals(key.publicKey.spki))
    throw new ClientError('refused', 'ANSWER_INVALID', 'the certificate is of another key than the request');
  const now = context.now();
  if (certificate.notAfter.getTime() <= now)
    throw new ClientError('local', 'CLOCK_WRONG', `the new certificate has ended by the clock of this machine`);
  // A CA whose clock is ahead of ours: good in a moment.
  const at = Math.max(now, certificate.notBefore.getTime());
  const path = await findPath(certificate, anchors, intermediates, at);
  if (path === undefined)
    throw new ClientError('untrusted', 'CA_UNTRUSTED', 'the certificate does not lead to a CA that is trusted here');
  const chain = path.slice(1).filter(({ subject, issuer }) => !namesMatch(subject, issuer));
  const password =
    config.pkcs12_password_file === undefined
      ? ''
      : (context.disk.read(config.pkcs12_password_file) ?? '').replace(/\r?\n$/, '');
  const options = { formats: config.formats, password, name: config.name };
  folder.install(await filesOf({ certificate, chain, privateKey: key.pem }, options));
}
