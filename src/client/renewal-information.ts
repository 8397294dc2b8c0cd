/** Asks the server when to renew (draft-ietf-lamps-est-renewal-info). */
import { describe } from '../errors.ts';
import { OID } from '../pki/der/oids.ts';
import { ocspRequestFor, readOcspStatus } from '../pki/ocsp/ocsp-client.ts';
import { type Certificate, isIssuedBy, parsePemCertificates } from '../pki/x509/certificate.ts';
import { findExtension, parseAuthorityInfoAccess } from '../pki/x509/extensions.ts';
import { chooseIdentity } from './identity.ts';
import type { LiveCertificate } from './keep/certificate-folder.ts';
import type { RenewalPlan } from './keep/state.ts';
import { type ClientTask, withFirstServer } from './servers.ts';
import { knowledgeOf } from './status.ts';

/** Milliseconds after which a server without an answer, or without Retry-After, is asked again; and at least. */
const [ASK_AGAIN, LEAST] = [6 * 3_600_000, 60_000];
const MOST = 86_400_000;

/** The plan from the server's answer. Without a valid one, the client's own schedule applies. Never rejects. */
export async function askForRenewal(
  task: ClientTask,
  live: LiveCertificate,
  former: RenewalPlan | undefined,
): Promise<RenewalPlan> {
  const { config, context } = task;
  const { certificate, version } = live;
  const server = former?.version === version ? former.server : undefined;
  const nothing = { version, start: 0, end: 0, at: 0, ask: context.now() + ASK_AGAIN, server };
  const id = idOf(certificate);
  if (id === undefined) return nothing;
  try {
    // The request needs no authentication, but some servers want a certificate in every handshake.
    const { identity } = chooseIdentity(config, live, context.now(), context);
    const answer = await withFirstServer(task, { identity }, (est) => est.renewalInfo(id));
    // A server without this operation answers 404, too.
    if (answer === 'unknown' || answer === undefined)
      return { ...nothing, server: (await askOcsp(task, live)) ?? (server && answer) ?? server };
    const { start, end, retryAfter } = answer;
    const wait = retryAfter === undefined ? ASK_AGAIN : Math.min(MOST, Math.max(LEAST, retryAfter * 1000));
    const ask = context.now() + wait;
    // A window that stays keeps the time that was chosen in it.
    if (former?.version === version && former.start === start && former.end === end)
      return { ...former, ask, server: 'known' };
    return { version, start, end, at: Math.round(start + context.random() * (end - start)), ask, server: 'known' };
  } catch (error) {
    return { ...nothing, server: knowledgeOf(describe(error)) ?? (await askOcsp(task, live)) ?? server };
  }
}

/** What the OCSP responder says against the certificate; undefined: nothing, or it cannot be asked. Never rejects. */
async function askOcsp(
  { context, store }: ClientTask,
  live: LiveCertificate,
): Promise<'revoked' | 'unknown' | undefined> {
  const { certificate, fullChain } = live;
  try {
    const access = findExtension(certificate.extensions, OID.authorityInfoAccess)?.value;
    const url = access && parseAuthorityInfoAccess(access).ocsp.find((responder) => /^https?:/i.test(responder));
    const { anchors, intermediates } = store.trust();
    const known = [...parsePemCertificates(fullChain).slice(1), ...intermediates, ...anchors];
    const issuer = url === undefined ? undefined : await firstIssuer(certificate, known);
    if (url === undefined || issuer === undefined) return undefined;
    const response = await context.ocsp(url, ocspRequestFor(certificate, issuer));
    const status = await readOcspStatus(response, certificate, issuer, context.now());
    return status === 'good' ? undefined : status;
  } catch {
    return undefined;
  }
}

async function firstIssuer(of: Certificate, known: readonly Certificate[]): Promise<Certificate | undefined> {
  for (const issuer of known) if (await isIssuedBy(of, issuer)) return issuer;
  return undefined;
}

/** RFC 9773 §4.1 */
function idOf({ authorityKeyIdentifier, serialNumber }: Certificate): string | undefined {
  if (authorityKeyIdentifier === undefined) return undefined;
  const serial = Buffer.from(serialNumber, 'hex');
  const [first = 0] = serial;
  const content = first > 127 ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  return `${authorityKeyIdentifier.toString('base64url')}.${content.toString('base64url')}`;
}
