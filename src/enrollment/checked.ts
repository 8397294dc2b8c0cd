/** The stage after policy: what csrattrs asks for, the CA's profile, and all that the CA checks before its key is used, lints included. */
import type { PreparedIssuance } from '../ca/driver.ts';
import { checkPolicy } from '../ca/profile.ts';
import { badRequest, failed, type EstuaryError } from '../errors.ts';
import type { RequestKey } from '../pki/pkcs10/csr.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { Authorized } from './authorized.ts';
import type { Keyed } from './keyed.ts';

/** Made of what passed every check, and nowhere else. Nothing is signed that is not one. */
export class Checked {
  readonly keyed: Keyed;
  readonly #prepared: PreparedIssuance;

  private constructor(keyed: Keyed, prepared: PreparedIssuance) {
    this.keyed = keyed;
    this.#prepared = prepared;
  }

  /** To be signed, with the serial number that it will carry. */
  get prepared(): PreparedIssuance {
    return this.#prepared;
  }

  /** @throws EstuaryError 400 csrattrs, policy, lint; 500 or 503 from the CA */
  static async of(keyed: Keyed): Promise<Checked> {
    const { request, csr, names, key } = keyed;
    const { requestId, ca, operation } = request;
    const { publicKey, proof, shown, format } = key;
    checkContent(keyed, publicKey, shown);
    const forwarded = operation === 'fullcmc' && csr.renamed !== true ? { format, der: csr.der } : undefined;
    const { spki } = publicKey;
    return new Checked(
      keyed,
      await ca.driver.prepare({
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

  /** The same with another serial number, where the first one was taken. @throws EstuaryError as {@link of} */
  again(): Promise<Checked> {
    return Checked.of(this.keyed);
  }
}

function checkContent(
  { request: { ca }, csr, names, values }: Pick<Authorized, 'request' | 'csr' | 'names' | 'values'>,
  publicKey: PublicKeyInfo | undefined,
  shown: RequestKey | undefined,
): void {
  ca.csrAttributes.check(csr, shown);
  checkPolicy(ca.profile, { ...names, values, publicKey, extensions: csr.extensions });
  if (ca.isSubjectOfCa(names.subject))
    throw badRequest(
      'SUBJECT_NOT_ALLOWED',
      "The subject is that of a certificate authority: use the subject's own name.",
    );
}

/**
 * What can be refused before there is a key, and before anything reaches a CA elsewhere.
 *
 * @throws EstuaryError 400 csrattrs, policy; 500 `CA_QUEUED_GENERATED_KEY`
 */
export async function checkWithoutKey(authorized: Authorized): Promise<void> {
  checkContent(authorized, undefined, undefined);
  const { remoteQueue } = authorized.request.ca.driver;
  if (remoteQueue !== undefined && !(await remoteQueue.issuesAtOnce())) throw queuedGeneratedKey('its profile queues');
}

/** 500: a key that we generate is gone with its request, so nobody could use what a queue may issue later. */
export function queuedGeneratedKey(detail: string): EstuaryError {
  return failed('CA_QUEUED_GENERATED_KEY', 'The CA queues requests, so it cannot issue for a server-generated key.', {
    detail,
  });
}
