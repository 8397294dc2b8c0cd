/** Stage after policy: csrattrs, the CA's profile, and all checks of the CA before its key is used, including lints. */
import { prepareAt, type PreparedIssuance } from '../ca/driver.ts';
import { checkPolicy } from '../ca/profile.ts';
import { checkForwarded } from '../ca/remote/forwarded.ts';
import { badRequest, failed, type EstuaryError } from '../errors.ts';
import type { RequestKey } from '../pki/pkcs10/csr.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { Authorized } from './authorized.ts';
import type { Keyed } from './keyed.ts';

/** Created only from what passed every check; nothing else is signed. */
export class Checked {
  readonly keyed: Keyed;
  readonly #prepared: PreparedIssuance;

  private constructor(keyed: Keyed, prepared: PreparedIssuance) {
    this.keyed = keyed;
    this.#prepared = prepared;
  }

  /** The prepared certificate, with its serial number. */
  get prepared(): PreparedIssuance {
    return this.#prepared;
  }

  /** @throws EstuaryError 400 csrattrs, policy, lint; 500 or 503 from the CA */
  static async of(keyed: Keyed): Promise<Checked> {
    const { request, csr, names, key } = keyed;
    const { requestId, ca, operation } = request;
    const { publicKey, proof, shown, format } = key;
    await checkContent(keyed.authorized, publicKey, shown);
    const forwarded = operation === 'fullcmc' && csr.renamed !== true ? { format, der: csr.der } : undefined;
    const { spki } = publicKey;
    return new Checked(
      keyed,
      await prepareAt(ca.driver, {
        ...names,
        request_id: requestId,
        spki,
        publicKey,
        extensions: csr.extensions,
        csr: proof,
        forwarded,
        validityDays: keyed.authorized.validityDays,
        requester: request.identity.display,
        operation,
      }),
    );
  }

  /** The same with a new serial number after a collision. @throws EstuaryError as {@link of} */
  again(): Promise<Checked> {
    return Checked.of(this.keyed);
  }
}

async function checkContent(
  { request: { ca }, csr, names, values }: Authorized,
  publicKey: PublicKeyInfo | undefined,
  shown: RequestKey | undefined,
): Promise<void> {
  ca.requireUsable();
  ca.csrAttributes.check(csr, shown);
  checkPolicy(ca.profile, { ...names, values, publicKey, extensions: csr.extensions });
  if (ca.driver.takesCsr === true) await checkForwarded(ca, csr);
  if (ca.isSubjectOfCa(names.subject))
    throw badRequest(
      'SUBJECT_NOT_ALLOWED',
      "The subject is that of a certificate authority: use the subject's own name.",
    );
}

/**
 * Checks that need neither a key nor a remote CA.
 * @throws EstuaryError 400 csrattrs, policy; 500 `CA_QUEUED_GENERATED_KEY`
 */
export async function checkWithoutKey(authorized: Authorized): Promise<void> {
  await checkContent(authorized, undefined, undefined);
  const { remoteQueue } = authorized.request.ca.driver;
  if (remoteQueue !== undefined && !(await remoteQueue.issuesAtOnce())) throw queuedGeneratedKey('its profile queues');
}

/** 500: a generated key is gone with its request, so a certificate issued later from a queue would be useless. */
export function queuedGeneratedKey(detail: string): EstuaryError {
  return failed('CA_QUEUED_GENERATED_KEY', 'The CA queues requests, so it cannot issue for a server-generated key.', {
    detail,
  });
}
