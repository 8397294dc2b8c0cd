import type { StatusSigner } from '../../ca/driver.ts';
import type { Ca } from '../../ca/router.ts';
import { errorWith } from '../../errors.ts';
import { crlsOnly } from '../../pki/cms/pkcs7.ts';
import type { CrlRow } from '../../store/crl-store.ts';
import { encodeBody } from './codec.ts';
import { derAnswer, type EstOperation } from './operation.ts';

export interface CrlsDependencies {
  /** The CA's CRL, signed anew where it is due. */
  readonly currentCrl: (ca: Ca, signer: StatusSigner) => Promise<CrlRow>;
}

/** RFC 8295 §4.2 has the type with crls-only in place of certs-only. */
const CRLS_ONLY = 'application/pkcs7-mime; smime-type=crls-only';

/**
 * `GET crls` (RFC 8295 §4): the CA's current CRL in a degenerate CMS message. Needs no authentication, as the list is
 * signed. 501 for a CA that publishes its CRLs itself.
 */
export function crls({ currentCrl }: CrlsDependencies): EstOperation {
  /** Bodies by list, then by line length: a list is asked for more often than signed, and may be large. */
  const bodies = new WeakMap<Buffer, Map<number | undefined, string>>();

  function bodyOf(list: Buffer, lineLength: number | undefined): string {
    const known = bodies.get(list) ?? new Map<number | undefined, string>();
    bodies.set(list, known);
    const body = known.get(lineLength) ?? encodeBody(crlsOnly([list]), lineLength);
    known.set(lineLength, body);
    return body;
  }

  return {
    name: 'crls',
    method: 'GET',
    enabled: true,
    challenges: false,
    checkOffered: (ca) => void signerOf(ca),
    handle: async ({ ca, lineLength }) => {
      const { der } = await currentCrl(ca.issuer, signerOf(ca));
      return derAnswer(CRLS_ONLY, bodyOf(der, lineLength));
    },
  };
}

/** @throws EstuaryError 501 */
function signerOf({ driver }: Ca): StatusSigner {
  const { statusSigner } = driver;
  if (statusSigner === undefined)
    throw errorWith(501, 'OPERATION_OFF', 'This CA publishes its revocation lists itself, elsewhere.');
  return statusSigner;
}
