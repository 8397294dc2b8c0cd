/** Cached bodies that are the same for every request. */
import type { EstAuthenticator } from '../../auth/est-authenticator.ts';
import type { StatusSigner } from '../../ca/driver.ts';
import type { Ca } from '../../ca/router.ts';
import { errorWith } from '../../errors.ts';
import { certsOnly, crlsOnly } from '../../pki/cms/cms.ts';
import type { CrlRow } from '../../store/crl-store.ts';
import { encodeBody } from './codec.ts';
import { CERTS_ONLY, derAnswer, type EstOperation, PUBLIC } from './operation.ts';

/** Bodies by source and line length. A source is an immutable object; its replacement gets new bodies. */
export class ReadyBodies {
  readonly #ready = new WeakMap<object, Map<number | undefined, string>>();

  /** @param make the DER, if there is no body yet; its errors propagate */
  of(source: object, lineLength: number | undefined, make: () => Buffer): string {
    let bodies = this.#ready.get(source);
    if (bodies === undefined) this.#ready.set(source, (bodies = new Map<number | undefined, string>()));
    let body = bodies.get(lineLength);
    if (body === undefined) bodies.set(lineLength, (body = encodeBody(make(), lineLength)));
    return body;
  }
}

/**
 * `GET cacerts` (RFC 7030 §4.1): the CA's chain, issuing CA first, up to the root, then OldWithOld, OldWithNew and
 * NewWithOld (§4.1.3) if configured. Needs no authentication.
 */
export function cacerts(): EstOperation {
  const ready = new ReadyBodies();
  return {
    ...PUBLIC,
    name: 'cacerts',
    handle: ({ ca, lineLength }) =>
      new Promise((resolve) => {
        resolve(
          derAnswer(
            CERTS_ONLY,
            ready.of(ca.driver.chain(), lineLength, () => certsOnly(ca.chain)),
          ),
        );
      }),
  };
}

export interface CsrAttrsDependencies {
  readonly authenticator: EstAuthenticator;
  /** `est.csrattrs_require_mtls`. */
  readonly csrattrsRequireMtls: boolean;
  readonly now: () => number;
}

/** `GET csrattrs` (RFC 7030 §4.5, RFC 8951 §4): the CA's requirements for CSRs; 204 without any. */
export function csrattrs({ authenticator, csrattrsRequireMtls, now }: CsrAttrsDependencies): EstOperation {
  const ready = new ReadyBodies();
  return {
    ...PUBLIC,
    name: 'csrattrs',
    handle: async ({ ca, presented, lineLength }) => {
      if (csrattrsRequireMtls) {
        await authenticator.authenticate(presented, {
          operation: 'csrattrs',
          caLabel: ca.label,
          certificateOnly: true,
          expiredGraceSeconds: 0,
          awaitsChain: ca.awaitsChain.bind(ca),
          now: now(),
        });
      }
      const upstream = await ca.driver.csrAttributes?.();
      const der = upstream ?? ca.csrAttributes.der;
      if (der === undefined) return { status: 204, headers: {}, body: '' };
      return derAnswer(
        'application/csrattrs',
        ready.of(der, lineLength, () => der),
      );
    },
  };
}

export interface CrlsDependencies {
  /** The CA's CRL, renewed if due. */
  readonly currentCrl: (ca: Ca, signer: StatusSigner) => Promise<CrlRow>;
}

/** RFC 8295 §4.2: crls-only instead of certs-only. */
const CRLS_ONLY = 'application/pkcs7-mime; smime-type=crls-only';

/**
 * `GET crls` (RFC 8295 §4): the CA's current CRL in a degenerate CMS message. Needs no authentication, since the list
 * is signed. 501 for a CA that publishes its CRLs itself.
 */
export function crls({ currentCrl }: CrlsDependencies): EstOperation {
  // A list is requested more often than signed, and may be large.
  const ready = new ReadyBodies();
  return {
    ...PUBLIC,
    name: 'crls',
    checkOffered: (ca) => void signerOf(ca),
    handle: async ({ ca, lineLength }) => {
      const { der } = await currentCrl(ca.issuer, signerOf(ca));
      return derAnswer(
        CRLS_ONLY,
        ready.of(der, lineLength, () => crlsOnly([der])),
      );
    },
  };
}

/** @throws EstuaryError 501 */
function signerOf({ driver }: Ca): StatusSigner {
  const { statusSigner } = driver;
  if (statusSigner === undefined)
    throw errorWith(501, 'OPERATION_OFF', 'This CA publishes its own CRLs. Use the address in the certificate.');
  return statusSigner;
}
