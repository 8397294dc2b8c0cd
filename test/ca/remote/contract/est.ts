/** An EST server as upstream. */
import { certsOnly } from '../../../../src/pki/cms/cms.ts';
import { parseCsr } from '../../../../src/pki/pkcs10/csr.ts';
import type { Issuer } from '../../../support/certificates.ts';
import { csrOf, startStandIn } from '../../../support/est-stand-in.ts';
import { serve, Steps, type Reply } from '../../../support/upstream-steps.ts';
import { CertifiedBy, isFor, type Pki, type StandIn } from './stand-in.ts';

const certificates = (ders: readonly Buffer[]): Reply => ({
  status: 200,
  headers: { 'Content-Type': 'application/pkcs7-mime; smime-type=certs-only' },
  body: certsOnly(ders).toString('base64'),
});

export async function estStandIn(
  tls: Issuer,
  pki: Pki,
  now: () => number,
): Promise<StandIn & { readonly url: string }> {
  const steps = new Steps();
  const ca = new CertifiedBy(pki, now);
  /** By CSR, which a poll repeats. */
  const waiting = new Map<string, 'pending' | 'approve' | 'reject'>();
  const server = await startStandIn(tls, (request) =>
    serve(steps, `${request.method} ${request.operation}`, request.response, async () => {
      if (request.operation === 'cacerts') return certificates(pki.chain.map(({ der }) => der));
      const { body } = request;
      const state = waiting.get(body);
      const text = { 'Content-Type': 'text/plain' };
      if (standIn.mode === 'refuse' || state === 'reject')
        return { status: 403, headers: text, body: 'not on\nthis list' };
      if (state === 'pending' || (state === undefined && standIn.mode === 'queue')) {
        waiting.set(body, 'pending');
        return { status: 202, headers: { 'Retry-After': '1' } };
      }
      waiting.delete(body);
      const [leaf] = await ca.issue(csrOf(request));
      // Only the certificate (RFC 7030 §4.2.3).
      return certificates(leaf === undefined ? [] : [leaf]);
    }),
  );
  const standIn: StandIn & { readonly url: string } = {
    url: `${server.url}/.well-known/est`,
    steps,
    mode: 'issue',
    get wrong() {
      return ca.wrong;
    },
    set wrong(wrong) {
      ca.wrong = wrong;
    },
    certified: () => ca.all,
    decide(decision, name) {
      for (const body of waiting.keys())
        if (isFor(parseCsr(Buffer.from(body, 'base64')), name)) waiting.set(body, decision);
      return Promise.resolve();
    },
    stop: () => server.stop(),
  };
  return standIn;
}
