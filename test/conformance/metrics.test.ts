/** contract §4: what GET /metrics counts is what happened on both listeners. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
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
  const answer = await call({
    port: estuary.server.port('admin'),
    path: '/metrics',
    tls: { ca: estuary.root },
    headers: { Authorization: `Bearer ${estuary.adminToken}` },
  });
  expect(answer.status).toBe(200);
  const lines = answer.text.split('\n');
  for (const line of [
    'estuary_requests_total{listener="est",operation="simpleenroll",status="200",worker="0"} 1',
    'estuary_requests_total{listener="est",operation="simpleenroll",status="401",worker="0"} 1',
    'estuary_requests_total{listener="est",operation="unknown",status="404",worker="0"} 1',
    'estuary_requests_total{listener="admin",operation="POST /admin/otp",status="201",worker="0"} 1',
    'estuary_certificates_issued_total{ca="devices",worker="0"} 1',
    'estuary_authentication_failures_total{method="otp",worker="0"} 1',
    'estuary_ca_up{ca="lab",worker="0"} 1',
  ])
    expect(lines).toContain(line);
});
