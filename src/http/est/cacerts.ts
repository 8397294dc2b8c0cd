import { certsOnly } from '../../pki/cms/pkcs7.ts';
import { CERTS_ONLY, derAnswer, type EstOperation } from './operation.ts';
import { ReadyBodies } from './ready-bodies.ts';

/**
 * `GET cacerts` (RFC 7030 §4.1): the CA's chain, issuing CA first, up to the root, then OldWithOld, OldWithNew and
 * NewWithOld (§4.1.3) where the operator has them. Needs no authentication.
 */
export function cacerts(): EstOperation {
  const ready = new ReadyBodies();
  return {
    name: 'cacerts',
    method: 'GET',
    enabled: true,
    challenges: false,
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
