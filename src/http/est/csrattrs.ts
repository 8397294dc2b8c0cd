import type { EstAuthenticator } from '../../auth/est-authenticator.ts';
import { derAnswer, type EstOperation } from './operation.ts';
import { ReadyBodies } from './ready-bodies.ts';

export interface CsrAttrsDependencies {
  readonly authenticator: EstAuthenticator;
  /** `est.csrattrs_require_mtls`. */
  readonly csrattrsRequireMtls: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** `GET csrattrs` (RFC 7030 §4.5, RFC 8951 §4): what the CA wants in a CSR; 204 when it wants nothing. */
export function csrattrs({ authenticator, csrattrsRequireMtls, now }: CsrAttrsDependencies): EstOperation {
  const ready = new ReadyBodies();
  return {
    name: 'csrattrs',
    method: 'GET',
    enabled: true,
    challenges: false,
    handle: async ({ ca, presented, lineLength }) => {
      if (csrattrsRequireMtls) {
        await authenticator.authenticate(presented, {
          operation: 'csrattrs',
          caLabel: ca.label,
          certificateOnly: true,
          expiredGraceSeconds: 0,
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
