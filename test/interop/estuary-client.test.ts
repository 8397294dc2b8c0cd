/** `estuary client` against Estuary and libest's `estserver`, each operation over TLS 1.2 and 1.3. */
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasLibest, startLibest } from '../support/libest.ts';
import { makeKey } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { liveCertificate, liveVersion } from '../support/estuary-client.ts';
import { Kdc, SERVICE } from '../support/kdc.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { approve } from '../support/queued-requests.ts';
import { requires } from '../support/requires.ts';
import { rollRoot } from '../support/rollover.ts';
import { killed } from '../support/spawned.ts';

const SHIFTED_CLOCK = join(import.meta.dirname, '../support/shifted-clock.ts');
/** Milliseconds: more than ten days, and less than five more. */
const AFTER_EXPIRY = 12 * 86_400_000;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
let clients = 0;

describe('Estuary', () => {
  let estuary: Estuary;
  let fingerprint: string;

  beforeAll(async () => {
    estuary = await Estuary.start({
      env: { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, CLOCK_SHIFT: String(AFTER_EXPIRY), CLOCK_STEP: '1' },
      configure(config) {
        const other = structuredClone(caSection(config));
        const profile = { ...section(other, 'profile'), validity_days: 10 };
        config['ca'] = [
          caSection(config),
          { ...other, label: 'registered', default: false, devices: 'required', profile },
          { ...other, label: 'graceful', default: false, profile: { ...profile, renewal_grace_days: 5 } },
        ];
        section(config, 'est')['require_pop_linking'] = true;
        section(config, 'est')['retry_after'] = 2;
        caSection(config)['csrattrs'] = {
          template: true,
          key_type: 'ec:P-384',
          signature: 'ecdsaWithSHA384',
          extensions: [{ name: 'keyUsage', value: ['digitalSignature'] }, 'subjectAltName'],
          subject: [{ CN: '' }],
        };
      },
    });
    fingerprint = new X509Certificate(estuary.root).fingerprint256;
  });
  afterAll(() => estuary.stop());

  async function client(name: string, server: Record<string, unknown> = {}, label?: string): Promise<LocalClient> {
    const { token } = await estuary.otp({ client_id: name });
    return localClient(join(estuary.dir, `clients/${++clients}`), {
      server: { url: `https://localhost:${estuary.server.port('est')}`, ca_fingerprint: fingerprint, ...server },
      certificate: { subject: `CN=${name}`, dns_names: [`${name}.example`], otp_env: 'OTP', label },
      env: { OTP: token },
    });
  }

  test.each(VERSIONS)(
    'cacerts, csrattrs with a template, simpleenroll and simplereenroll, all bound to %s',
    async (version) => {
      const one = await client(`web-${version}`, { min_version: version, max_version: version });
      expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
      const first = liveCertificate(one.folder);
      expect([first.publicKey.keyType, first.keyUsage]).toEqual(['ec:P-384', ['digitalSignature']]);
      expect(await one.step('renew')).toMatchObject({ outcome: 'changed', error: undefined });
      const second = liveCertificate(one.folder);
      expect(second.spki.equals(first.spki)).toBe(false);
      expect(second.subjectAltNames).toEqual(first.subjectAltNames);
    },
  );

  test('an administrator decides: 202 until then', async () => {
    estuary.reconfigure((config) => void (caSection(config)['approval'] = 'manual'));
    await estuary.server.stop();
    await estuary.restart();
    const one = await client('approved');
    expect(await one.step()).toMatchObject({ outcome: 'pending' });
    await approve(estuary, 'approved');
    one.ahead = 3000;
    expect(await one.step()).toMatchObject({ outcome: 'changed' });
    estuary.reconfigure((config) => void (caSection(config)['approval'] = 'auto'));
    await estuary.server.stop();
    await estuary.restart();
  });

  test('a disabled device keeps its certificate, and renews once it is enabled', async () => {
    await estuary.admin('POST', '/admin/devices', { id: 'fleet-1' });
    const one = await client('fleet-1', {}, 'registered');
    expect(await one.step()).toMatchObject({ outcome: 'changed' });
    await estuary.admin('PATCH', '/admin/devices/fleet-1', { enabled: false });
    expect(await one.step('renew')).toMatchObject({ outcome: 'failed', error: { code: 'DEVICE_DISABLED' } });
    expect(liveVersion(one.folder)).toBe(1);
    await estuary.admin('PATCH', '/admin/devices/fleet-1', { enabled: true });
    expect(await one.step('renew')).toMatchObject({ outcome: 'changed' });
  });

  test('a server that is killed under a request, and is back later', async () => {
    const one = await client('patient');
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    expect(await one.step()).toMatchObject({ outcome: 'failed', error: { code: 'SERVER_UNREACHABLE' } });
    // On another port: the client is told where.
    await estuary.restart();
    const again = await client('patient');
    expect(await again.step()).toMatchObject({ outcome: 'changed' });
  });

  test('RFC 7030 §4.1.3: the root gets a new key, and the client goes along', async () => {
    const one = await client('rolled');
    await one.step();
    rollRoot(estuary.dir);
    const oldAnchor = new X509Certificate(estuary.root).fingerprint256;
    estuary.reconfigure((config) => void (caSection(config)['chain'] = 'ca/rollover.pem'));
    await estuary.server.stop();
    await estuary.restart();
    const later = localClient(one.folder, {
      server: { url: `https://localhost:${estuary.server.port('est')}`, ca_fingerprint: fingerprint },
      certificate: { subject: 'CN=rolled', otp_env: 'OTP' },
    });
    expect(await later.step('renew')).toMatchObject({ outcome: 'changed' });
    const newAnchor = new X509Certificate(readFileSync(join(estuary.dir, 'ca/new-root.pem'))).fingerprint256;
    const believed = readFileSync(join(one.folder, 'trust/anchors.pem'), 'latin1')
      .split(/(?<=-----END CERTIFICATE-----\n)/)
      .filter((pem) => pem !== '')
      .map((pem) => new X509Certificate(pem).fingerprint256);
    expect(believed.sort()).toEqual([oldAnchor, newAnchor].sort());
    expect(later.log.join()).toContain('trusts the new CA');
  });

  test('with renewal_grace_days, an expired certificate renews itself; otherwise a password in its folder replaces it', async () => {
    const [late, lost] = [await client('late', {}, 'graceful'), await client('lost', {}, 'registered')];
    await estuary.admin('POST', '/admin/devices', { id: 'lost' });
    for (const one of [late, lost]) expect(await one.step()).toMatchObject({ outcome: 'changed' });
    estuary.server.signal('SIGUSR2');
    for (const one of [late, lost]) one.ahead = AFTER_EXPIRY;
    expect(await late.step()).toMatchObject({ outcome: 'changed' });
    expect(await lost.step()).toMatchObject({ outcome: 'failed', error: { code: 'CREDENTIALS_MISSING' } });
    const expires_at = new Date(Date.now() + 2 * AFTER_EXPIRY).toISOString();
    writeFileSync(join(lost.folder, 'otp'), (await estuary.otp({ client_id: 'lost', expires_at })).token);
    expect(await lost.step()).toMatchObject({ outcome: 'changed' });
    expect(existsSync(join(lost.folder, 'otp'))).toBe(false);
  });
});

describe.skipIf(!requires('kdc'))('Estuary with Kerberos', () => {
  test('a ticket authenticates the first enrollment', async () => {
    const kdc = await Kdc.start();
    const estuary = await Estuary.start({
      configure: (config) =>
        void (config['gssapi'] = {
          enabled: true,
          keytab: kdc.keytab,
          service_principal: SERVICE,
          default_template: 'CN={primary}',
        }),
      env: kdc.env,
    });
    const former = { ...process.env };
    try {
      await kdc.addUser('alice');
      Object.assign(process.env, kdc.env, { KRB5CCNAME: `FILE:${await kdc.login('alice')}` });
      const one = localClient(join(estuary.dir, 'clients/kerberos'), {
        server: {
          url: `https://localhost:${estuary.server.port('est')}`,
          trust_anchors: join(estuary.dir, 'ca/root.pem'),
        },
        certificate: { subject: 'CN=alice', kerberos: true },
      });
      expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    } finally {
      process.env = former;
      await estuary.stop();
      await kdc.stop();
    }
  });
});

describe.skipIf(!hasLibest())("libest's estserver", () => {
  let estuary: Estuary;
  let libest: Awaited<ReturnType<typeof startLibest>>;

  beforeAll(async () => {
    // For its PKI.
    estuary = await Estuary.start();
    libest = await startLibest(estuary.dir);
  });
  afterAll(async () => {
    await killed(libest.process);
    await estuary.stop();
  });

  // It ends its csrattrs with a NUL, and speaks TLS 1.2 alone.
  test('cacerts, csrattrs, simpleenroll and simplereenroll', async () => {
    const identity = await estuary.enrolled(makeKey());
    const [certificate, privateKey] = [join(estuary.dir, 'first.pem'), join(estuary.dir, 'first.key')];
    writeFileSync(certificate, identity.cert);
    writeFileSync(privateKey, identity.key);
    const one = localClient(join(estuary.dir, 'clients/libest'), {
      server: {
        url: `https://localhost:${libest.port}`,
        ca_fingerprint: createHash('sha256').update(new X509Certificate(estuary.root).raw).digest('hex'),
      },
      certificate: { subject: 'CN=web', certificate, private_key: privateKey },
    });
    expect(await one.step()).toMatchObject({ outcome: 'changed', error: undefined });
    expect(await one.step('renew')).toMatchObject({ outcome: 'changed', error: undefined });
  });
});
