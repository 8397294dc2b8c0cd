/** contract §4 and §11: what GET /metrics counts is what happened on both listeners, in all processes. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start();
});
afterAll(() => estuary.stop());

test('requests, issued certificates and refused passwords are counted', async () => {
  const wire = onTheWire(simpleCsr(makeKey(), 'device-1'));
  const { token } = await estuary.otp();
  expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
  expect((await estuary.enroll(wire, { password: 'x'.repeat(20) })).status).toBe(401);
  expect((await estuary.est('no-such-thing')).status).toBe(404);
  const lines = await scrape(estuary);
  for (const line of [
    'estuary_requests_total{listener="est",operation="simpleenroll",status="200"} 1',
    'estuary_requests_total{listener="est",operation="simpleenroll",status="401"} 1',
    'estuary_requests_total{listener="est",operation="unknown",status="404"} 1',
    'estuary_requests_total{listener="admin",operation="POST /admin/otp",status="201"} 1',
    'estuary_certificates_issued_total{ca="devices"} 1',
    'estuary_authentication_failures_total{method="otp"} 1',
    'estuary_ca_up{ca="lab"} 1',
  ])
    expect(lines).toContain(line);
});

test('issue 12.6: with several workers each scrape has the sum over all, also when one has died', async () => {
  const est = await Estuary.start({ configure: (config) => (section(config, 'server')['workers'] = 2) });
  onTestFinished(() => est.stop());
  // Each on a connection of its own: the workers take them by turns.
  for (let i = 0; i < 4; i++) expect((await est.est('cacerts')).status).toBe(200);
  const counted = 'estuary_requests_total{listener="est",operation="cacerts",status="200"} 4';
  // An answer is counted when it is sent, which its client may see first.
  await vi.waitFor(async () => expect(await scrape(est)).toContain(counted), { timeout: 10_000 });
  for (let i = 0; i < 4; i++) expect(await scrape(est)).toContain(counted);

  const listening = () => est.server.log().filter(({ msg }) => msg === 'listening');
  const before = listening();
  process.kill(Number(before[0]?.['pid']), 'SIGKILL');
  await vi.waitFor(() => expect(listening()).toHaveLength(before.length + 2), { timeout: 20_000 });
  for (let i = 0; i < 2; i++) expect(await scrape(est)).toContain(counted);
});

async function scrape(server: Estuary): Promise<string[]> {
  const answer = await call({
    port: server.server.port('admin'),
    path: '/metrics',
    tls: { ca: server.root },
    headers: { Authorization: `Bearer ${server.adminToken}` },
  });
  expect(answer.status).toBe(200);
  return answer.text.split('\n');
}
