/** The Dogtag stand-in as upstream. */
import { DogtagStandIn } from '../../../support/dogtag-stand-in/index.ts';
import { Steps } from '../../../support/upstream-steps.ts';
import { isFor, makeStrangers, type Mode, type Pki, type StandIn, type Wrong } from './stand-in.ts';

export async function dogtagStandIn(now: () => number): Promise<StandIn & { readonly dogtag: DogtagStandIn }> {
  const dogtag = await DogtagStandIn.start();
  const { state, server, issuer } = dogtag;
  const pki: Pki = { issuing: issuer, chain: [issuer], ...(await makeStrangers('Dogtag', issuer, Date.now())) };
  const steps = new Steps();
  server.steps = steps;
  let mode: Mode = 'issue';
  return {
    dogtag,
    steps,
    get mode() {
      return mode;
    },
    set mode(next) {
      mode = next;
      state.holds = next === 'queue';
      state.refusal = next === 'refuse' ? 'not on\nthis list' : undefined;
    },
    get wrong(): Wrong | undefined {
      return undefined;
    },
    set wrong(wrong: Wrong | undefined) {
      state.issueInstead = wrong && (async (csr, serial) => (await wrong({ ...pki, serial }, csr, now())).der);
    },
    certified: () => [...state.certificates.values()].map(({ der, revoked }) => ({ der, isRevoked: revoked !== null })),
    async decide(decision, name) {
      for (const request of state.requests.values())
        if (request.status === 'pending' && isFor(request.csr, name)) await dogtag.decide(decision, String(request.id));
    },
    stop: () => dogtag.stop(),
  };
}
