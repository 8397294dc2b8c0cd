/** Full CMC through an Estuary before the real Dogtag: each request signed anew as the agent, one at a time. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { asks, atOnce, exchange } from '../ca/dogtag/cmc-exchange.ts';
import { certificateOf, requestBy } from '../support/cmc.ts';
import { makeKey } from '../support/csr.ts';
import { AUTO } from '../support/dogtag-profiles.ts';
import { Dogtag, OPEN_TIMEOUT } from '../support/dogtag.ts';
import { Estuary } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';

describe.skipIf(!requires('dogtag'))('fullcmc at the real Dogtag', () => {
  let dogtag: Dogtag;
  let estuary: Estuary;
  const run = Date.now().toString(36);
  beforeAll(async () => {
    dogtag = await Dogtag.open();
    estuary = await Estuary.start({
      configure: (config, dir) => dogtag.configure(config, dir, AUTO, { cmc_profile: AUTO.id, timeout: 30 }),
    });
  }, OPEN_TIMEOUT + 60_000);
  afterAll(async () => {
    await estuary.stop();
    await dogtag.close();
  });

  test("a client's request is issued by the CMC profile", async () => {
    const cn = `cmc-${run}`;
    const client = await estuary.enrolled(makeKey(), cn);
    const key = makeKey();
    const reply = await exchange(estuary, client, await asks(client, cn, key));
    expect(reply).toMatchObject({ http: 200, status: { status: 'success', bodyList: [77] } });
    expect(reply.certificates.map(({ spki }) => spki.equals(key.spki))).toEqual([true]);
    expect(await dogtag.certificateStatus(reply.certificates[0]?.serialNumber ?? '')).toBe('VALID');
  });

  test('a revokeRequest revokes at Dogtag', async () => {
    const cn = `cmc-revoke-${run}`;
    const client = await estuary.enrolled(makeKey(), cn);
    const { issuer, serialNumber } = certificateOf(client);
    const revoke = buildControl(5, 'revokeRequest', { issuer, serialNumber, reason: 'superseded' });
    const reply = await exchange(estuary, client, await requestBy(client, { controlSequence: [revoke] }));
    expect(reply).toMatchObject({ http: 200, status: { status: 'success' } });
    expect(await dogtag.certificateStatus(serialNumber)).toBe('REVOKED');
  });

  test('50 concurrent requests: each client gets its own certificate', async () => {
    const clients = [];
    for (let i = 0; i < 50; i++) {
      const cn = `cmc-many-${i}-${run}`;
      clients.push({ cn, client: await estuary.enrolled(makeKey(), cn), key: makeKey() });
    }
    expect(new Set(await atOnce(estuary, clients))).toEqual(new Set(['success, its own']));
  });
});
