/** Requests of CMC messages in the pipeline: their format is kept, and so are their names. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { CmcIdentity } from '../../src/auth/identity.ts';
import type { CaDriver, IssuanceRequest } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import { Authenticated, credentialRules } from '../../src/enrollment/authenticated.ts';
import type { AuthorizationRequest } from '../../src/enrollment/authorization/messages.ts';
import { Proven } from '../../src/enrollment/proven.ts';
import { forbidden, unavailable } from '../../src/errors.ts';
import { parseCertificateRequest } from '../../src/pki/cmc/tagged-request.ts';
import { sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsr, verifyCsr } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { T0 } from '../store/rows.ts';
import { ecdsaTwin, makeCa, makeClient } from '../support/certificates.ts';
import { buildCsr, commonName, csrAttribute, dns, makeKey, simpleCsr } from '../support/csr.ts';
import { pipeline, received, remoteQueue, storeWithCa } from './support.ts';

let now = T0 + 1000;
const { store, devices } = await storeWithCa(() => now);

const maker = await makeCa('CN=Maker');
const agent = parseCertificate((await makeClient('CN=agent', maker)).der);
const sender: CmcIdentity = {
  method: 'cmc',
  requester: 'cmc:agent',
  display: 'CN=agent',
  certificate: agent,
  issuer: parseCertificate(maker.der),
};

type Kind = 'pkcs10' | 'crmf';

async function proven(kind: Kind, der: Buffer): Promise<Proven> {
  if (kind === 'crmf') {
    const request = parseCertificateRequest({ kind: 'crm', bodyPartID: 1, der });
    return Proven.byCmc(request, { method: 'signature', csr: undefined });
  }
  const request = parseCertificateRequest({ kind: 'tcr', bodyPartID: 1, der });
  return Proven.byCmc(request, { method: 'signature', csr: await verifyCsr(parseCsr(der)) });
}

const base = (ca: Ca, requestId: string = randomUUID()) =>
  ({ ...received(ca, Buffer.alloc(0), { requestId }), operation: 'fullcmc', linking: { kind: 'carried' } }) as const;
const poll = (ca: Ca) => Authenticated.bySender(base(ca), sender, { kind: 'none' });

async function sent(ca: Ca, kind: Kind, der: Buffer, asked: AuthorizationRequest[] = []) {
  const enrollment = pipeline({
    store,
    identity: sender,
    now: () => now,
    authorization: {
      concerns: () => true,
      decide: (_, request) => (asked.push(request), Promise.resolve({})),
      failure: () => unavailable('AUTHORIZATION_FAILED', ''),
    },
  });
  const admitted = await enrollment.admit(Authenticated.bySender(base(ca), sender, { kind: 'any' }));
  const outcome = await enrollment.certify(await enrollment.authorize(admitted, await proven(kind, der)));
  return { outcome, enrollment };
}

const key = makeKey();
const BODIES: readonly [Kind, Buffer, string][] = [
  ['pkcs10', simpleCsr(key, 'device-1'), 'CERTIFICATE REQUEST'],
  ['crmf', buildCrmf(key), 'CRMF REQUEST'],
];
const change = csrAttribute(OID.changeSubjectName, sequence(commonName('new'), sequence(dns('new.example'))));

test.each(BODIES)(
  '%s: goes on as it came to a CA with CMC, and to the authorization service',
  async (kind, der, label) => {
    const seen: IssuanceRequest[] = [];
    const driver: CaDriver = {
      chain: () => devices.driver.chain(),
      issue: (request) => (seen.push(request), devices.driver.issue(request)),
    };
    const asked: AuthorizationRequest[] = [];
    await sent(new Ca(devices.config, driver), kind, der, asked);
    expect(seen.map(({ forwarded }) => forwarded)).toEqual([{ format: kind, der }]);
    expect(asked.map(({ csr }) => csr.split('-----')[1])).toEqual([`BEGIN ${label}`]);
  },
);

test('neither a request whose names have changed goes on as it came, nor one that is no message', async () => {
  const seen: IssuanceRequest[] = [];
  const { config } = devices;
  const driver: CaDriver = {
    chain: () => devices.driver.chain(),
    issue: (request) => (seen.push(request), devices.driver.issue(request)),
  };
  const ca = new Ca({ ...config, profile: { ...config.profile, allow_subject_change: true } }, driver);
  await sent(ca, 'pkcs10', buildCsr(key, { subject: commonName('old'), attributes: [change] }));
  const body = simpleCsr(key, 'device-1');
  await pipeline({ store, identity: sender }).enroll(received(ca, body, { requestId: randomUUID() }));
  expect(seen.map(({ forwarded, csr }) => [forwarded, csr?.der])).toEqual([
    [undefined, undefined],
    [undefined, body],
  ]);
});

test.each(BODIES)('%s: what is queued is what was sent, and what is issued', async (kind, der) => {
  const ca = new Ca({ ...devices.config, approval: 'manual' }, devices.driver);
  const { outcome, enrollment } = await sent(ca, kind, der);
  if (outcome.status !== 'pending') throw new Error(outcome.status);
  const id = outcome.requestId;
  const row = await store.getRequest(id);
  if (row === undefined) throw new Error('no request');
  expect([row.format, row.csr]).toEqual([kind, der]);
  await store.decideRequest({ id, status: 'approved', reason: null, decided_at: now }, []);
  const approved = { ...row, status: 'approved' as const };
  const issued = await enrollment.resume(poll(ca), approved);
  if (issued.status !== 'issued') throw new Error(issued.status);
  expect(parseCertificate(issued.certificate).spki).toEqual(key.spki);
});

test.each(BODIES)('%s: a CA elsewhere that is polled gets its PKCS#10, if it is one', async (kind, der) => {
  const polled: IssuanceRequest[] = [];
  const ca = new Ca(
    { ...devices.config, label: `elsewhere-${kind}` },
    {
      chain: () => devices.driver.chain(),
      issue: () => Promise.resolve({ status: 'pending', reference: 'r-1' }),
      remoteQueue: remoteQueue({
        issuesAtOnce: () => Promise.resolve(false),
        poll: (_, request) => (polled.push(request), Promise.reject(forbidden('CA_REJECTED', 'no'))),
      }),
    },
  );
  const { outcome, enrollment } = await sent(ca, kind, der);
  if (outcome.status !== 'pending') throw new Error(outcome.status);
  const row = await store.getRequest(outcome.requestId);
  if (row === undefined) throw new Error('no request');
  now += 10_000;
  await expect(enrollment.resume(poll(ca), row)).rejects.toThrow('no');
  expect(polled.map(({ pkcs10, spki }) => [pkcs10, spki])).toEqual([[kind === 'pkcs10' ? der : undefined, key.spki]]);
});

test('certificates of registration authorities are exempt from client_issuers, in any encoding; others are not', async () => {
  const rules = (exempt: readonly (typeof agent)[]) =>
    credentialRules(new Ca({ ...devices.config, client_issuers: ['own'] }, devices.driver), exempt);
  const other = parseCertificate((await makeClient('CN=other', maker)).der);
  const path = (leaf: typeof agent) => [leaf, parseCertificate(maker.der)];
  const twin = parseCertificate(ecdsaTwin(agent.der));
  expect(await rules([]).accepts(path(agent))).toBe(false);
  for (const leaf of [agent, twin]) expect(await rules([other, agent]).accepts(path(leaf))).toBe(true);
  expect(await rules([other]).accepts(path(agent))).toBe(false);
  expect(await rules([agent]).accepts([])).toBe(false);
});
