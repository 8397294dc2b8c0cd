/** GET /metrics counts what happened on all listeners. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, Estuary } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { ROOT } from '../support/root.ts';

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
    'estuary_requests_total{listener="est",operation="simpleenroll",ca="devices",status="200"} 1',
    'estuary_requests_total{listener="est",operation="simpleenroll",ca="devices",status="401"} 1',
    'estuary_requests_total{listener="est",operation="unknown",ca="",status="404"} 1',
    'estuary_requests_total{listener="admin",operation="POST /admin/otp",ca="",status="201"} 1',
    'estuary_certificates_issued_total{ca="devices"} 1',
    'estuary_authentication_failures_total{method="otp"} 1',
    'estuary_ca_up{ca="lab"} 1',
    'estuary_authentications_total{method="otp",outcome="success"} 1',
    'estuary_authentications_total{method="otp",outcome="failure"} 1',
    'estuary_refusals_total{listener="est",code="OTP_INVALID"} 1',
    'estuary_request_duration_seconds_count{listener="est",operation="simpleenroll",ca="devices",status="200"} 1',
    'estuary_dependency_call_duration_seconds_count{dependency="ca",ca="devices",outcome="ok"} 1',
    'estuary_store_up 1',
    'estuary_config_last_reload_successful 1',
  ])
    expect(lines).toContain(line);
});

test('docs/reference/metrics.md lists what is there, and nothing else', async () => {
  estuary.server.signal('SIGHUP');
  const documented = [
    ...readFileSync(join(ROOT, 'docs/reference/metrics.md'), 'utf8').matchAll(/^\| `([a-z_]+)` \| (\w+) \|/gm),
  ];
  const listed = documented.map(([, name, type]) => `${name} ${type}`).toSorted();
  await vi.waitFor(
    async () => {
      const there = (await scrape(estuary)).flatMap((line) => /^# TYPE (\S+ \S+)$/.exec(line)?.[1] ?? []);
      expect(there.toSorted()).toEqual(listed);
    },
    { timeout: 60_000 },
  );
});

test('the end of each certificate that the server needs is told, queue and revocations are counted', async () => {
  const { token } = await estuary.otp();
  const answer = await estuary.enroll(onTheWire(simpleCsr(makeKey(), 'device-2')), { password: token });
  const serial = new X509Certificate(certificatePem(answer)).serialNumber.toLowerCase();
  expect((await estuary.admin('POST', `/admin/certificates/${serial}/revoke?ca=devices`, {})).status).toBe(200);
  const lines = await scrape(estuary);
  expect(lines).toContain('estuary_certificates_revoked_total{ca="devices"} 1');
  for (const use of ['tls', 'ca', 'client_anchor', 'admin_anchor']) {
    const [line = ''] = lines.filter((text) =>
      text.startsWith(`estuary_certificate_expiry_timestamp_seconds{use="${use}"`),
    );
    expect(Number(line.split(' ').at(-1))).toBeGreaterThan(Date.now() / 1000);
  }
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
