/** A reload applies CAs, profiles, csrattrs, chains and labels, completely or not at all. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, itemsOf, section } from '../support/estuary.ts';
import { call, openTls } from '../support/https.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { requires } from '../support/requires.ts';
import { certify, newKey, rollIssuing, rollRoot } from '../support/rollover.ts';
import { softHsm } from '../support/softhsm.ts';

const DAY = 86_400_000;
const WAIT = { timeout: 60_000, interval: 50 };
const wire = onTheWire(simpleCsr(makeKey()));

type Change = (config: TomlTable, dir: string) => void;

/** Writes the changed configuration and reloads it. */
async function reload(estuary: Estuary, change: Change = () => undefined, query = '') {
  estuary.reconfigure(change);
  return estuary.admin('POST', `/admin/reload${query}`);
}

/** Adds a `[[ca]]` like the first, with its own label and files. */
function addCa(config: TomlTable, label: string, name: string): void {
  const cas = config['ca'];
  if (!Array.isArray(cas)) throw new TypeError('no CAs');
  const file = { private_key: `${name}.key` };
  cas.push({ ...caSection(config), label, default: false, certificate: `${name}.pem`, chain: `${name}.pem`, file });
}

const status = (estuary: Estuary, path: string): Promise<number> => estuary.est(path).then((answer) => answer.status);

/** Days that the certificate of a new enrollment is valid. */
async function validity(estuary: Estuary, path = 'simpleenroll'): Promise<number> {
  const { token } = await estuary.otp();
  const answer = await estuary.enroll(wire, { password: token, path });
  expect(answer.status, answer.text).toBe(200);
  const { validFrom, validTo } = new X509Certificate(certificatesOf(answer)[0] ?? '');
  return Math.round((Date.parse(validTo) - Date.parse(validFrom)) / DAY);
}

describe('a reload of the CAs', () => {
  let estuary: Estuary;
  let made: string;
  const file = (name: string): string => join(estuary.dir, name);

  beforeAll(async () => {
    estuary = await Estuary.start({
      configure(config) {
        caSection(config, 1)['approval'] = 'manual';
      },
    });
    made = readFileSync(file('est.toml'), 'utf8');
  });
  afterAll(() => estuary.stop());
  beforeEach(() => writeFileSync(file('est.toml'), made));
  afterEach(async () => {
    writeFileSync(file('est.toml'), made);
    expect((await reload(estuary)).status).toBe(200);
  });

  test('a new CA appears and issues; when it goes, its label is unknown', async () => {
    newKey(estuary.dir, 'ca/third');
    const extensions = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
    certify(estuary.dir, 'ca/third', { subject: '/CN=Third CA', key: 'ca/third', extensions });
    expect(await status(estuary, 'third/cacerts')).toBe(404);
    const added = await reload(estuary, (config) => addCa(config, 'third', 'ca/third'));
    expect(added).toMatchObject({ status: 200, json: { changed: ['ca'], needs_restart: [] } });
    expect(itemsOf({ items: added.json['certificates'] })).toContainEqual(
      expect.objectContaining({ use: 'ca', ca: 'third', subject: 'CN=Third CA', new: true }),
    );
    expect(await status(estuary, 'third/cacerts')).toBe(200);
    await validity(estuary, 'third/simpleenroll');
    expect(itemsOf((await estuary.admin('GET', '/admin/cas')).json).map(({ label }) => label)).toContain('third');
    writeFileSync(file('est.toml'), made);
    expect((await reload(estuary)).json).toMatchObject({ changed: ['ca'] });
    expect(await status(estuary, 'third/cacerts')).toBe(404);
  });

  test('a profile and csrattrs change; a dry run says so and changes nothing', async () => {
    const before = await validity(estuary);
    const change: Change = (config) => {
      section(caSection(config), 'profile')['validity_days'] = 5;
      caSection(config)['csrattrs'] = { key_type: 'ec:P-256' };
    };
    const changed = ['ca[devices].profile.validity_days', 'ca[devices].csrattrs'];
    const report = { status: 200, json: { changed: expect.arrayContaining(changed) as unknown, needs_restart: [] } };
    const attributes = (await estuary.est('csrattrs')).text;
    expect(await reload(estuary, change, '?dry_run=true')).toMatchObject(report);
    expect(await validity(estuary)).toBe(before);
    expect(await reload(estuary)).toMatchObject(report);
    expect(await validity(estuary)).toBe(5);
    expect((await estuary.est('csrattrs')).text).not.toBe(attributes);
  });

  test('a further label appears; one with queued requests goes, which is said with their number', async () => {
    const change: Change = (config) => {
      config['label'] = [{ name: 'staff', ca: 'devices', profile: { validity_days: 2 } }];
    };
    expect(await reload(estuary, change)).toMatchObject({ status: 200, json: { changed: ['label'] } });
    expect(await validity(estuary, 'staff/simpleenroll')).toBe(2);
    const { token } = await estuary.otp();
    expect((await estuary.enroll(wire, { password: token, path: 'lab/simpleenroll' })).status).toBe(202);
    const withoutLab: Change = (config) => {
      if (Array.isArray(config['ca'])) config['ca'] = config['ca'].slice(0, 1);
    };
    const gone = await reload(estuary, withoutLab);
    expect(gone).toMatchObject({ status: 200, json: { changed: ['ca'] } });
    const message = 'the label "lab" was removed, and 1 request waits in its queue';
    expect(gone.json['warnings']).toContainEqual({ key: 'ca', message });
    expect(await status(estuary, 'lab/cacerts')).toBe(404);
    expect((await estuary.admin('GET', '/readyz')).json['parts']).not.toHaveProperty('ca:lab');
  });

  test('a chain is replaced, and then the key and certificate of the CA', async () => {
    rollRoot(estuary.dir);
    const before = certificatesOf(await estuary.est('cacerts')).length;
    const chain: Change = (config) =>
      Object.assign(caSection(config), { certificate: 'ca/new-issuing.pem', chain: 'ca/links.pem' });
    expect(await reload(estuary, chain)).toMatchObject({ status: 200, json: { needs_restart: [] } });
    expect(certificatesOf(await estuary.est('cacerts'))).toHaveLength(before + 2);

    rollIssuing(estuary.dir, 'ca/next');
    const key: Change = (config) => {
      const table = caSection(config);
      Object.assign(table, { certificate: 'ca/next.pem', chain: 'ca/root.pem', file: { private_key: 'ca/next.key' } });
    };
    expect(await reload(estuary, key)).toMatchObject({ status: 200 });
    const { cert } = await estuary.enrolled(makeKey());
    const next = new X509Certificate(readFileSync(file('ca/next.pem')));
    expect(new X509Certificate(cert).verify(next.publicKey)).toBe(true);
  });

  test('what has changed in files under the same names applies too', async () => {
    const kept = ['ca/issuing.pem', 'ca/issuing.key'].map((name) => [name, readFileSync(file(name))] as const);
    onTestFinished(() => kept.forEach(([name, content]) => writeFileSync(file(name), content)));
    rollIssuing(estuary.dir, 'ca/issuing');
    expect(await reload(estuary)).toMatchObject({ status: 200, json: { changed: [] } });
    const { cert } = await estuary.enrolled(makeKey());
    const next = new X509Certificate(readFileSync(file('ca/issuing.pem')));
    expect(new X509Certificate(cert).verify(next.publicKey)).toBe(true);
    kept.forEach(([name, content]) => writeFileSync(file(name), content));
  });

  test('a broken one changes nothing, and is seen in the answer, /readyz and the metrics', async () => {
    const before = await validity(estuary);
    const failed = await reload(estuary, (config) => {
      section(caSection(config), 'profile')['validity_days'] = 3;
      caSection(config, 1)['chain'] = 4;
    });
    expect(failed).toMatchObject({ status: 409, json: { code: 'RELOAD_FAILED' } });
    expect(JSON.stringify(failed.json)).toContain('ca[lab].chain');
    expect(await validity(estuary)).toBe(before);
    expect((await estuary.admin('GET', '/readyz')).json['parts']).toMatchObject({ reload: 'degraded' });
    const metrics = await call({
      port: estuary.server.port('admin'),
      path: '/metrics',
      method: 'GET',
      tls: { ca: estuary.root },
      headers: { Authorization: `Bearer ${estuary.adminToken}` },
    });
    expect(metrics.text).toContain('estuary_config_last_reload_successful 0');
  });

  test('under load no request fails for it', async () => {
    const { token } = await estuary.otp({ max_uses: 100_000 });
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    onTestFinished(() => agent.destroy());
    const seen = new Map<number, number>();
    let stop = false;
    const calls = [
      () => estuary.est('cacerts', { agent }),
      () => estuary.enroll(wire, { password: token, agent }),
      () => estuary.est('cacerts'),
      () => estuary.enroll(wire, { password: token }),
    ];
    const load = calls.map(async (call) => {
      while (!stop) {
        const { status } = await call();
        seen.set(status, (seen.get(status) ?? 0) + 1);
      }
    });
    for (let round = 1; round <= 12; round++) {
      const changed = await reload(estuary, (config) => {
        section(caSection(config), 'profile')['validity_days'] = round;
      });
      expect(changed.status).toBe(200);
    }
    stop = true;
    await Promise.all(load);
    expect([...seen.keys()]).toEqual([200]);
    expect(await validity(estuary)).toBe(12);
  });
});

describe.skipIf(!requires('softhsm'))('a reload of a CA in an HSM', () => {
  let estuary: Estuary;
  let made: string;
  const hsm = softHsm();
  const children = (): number[] =>
    estuary.server
      .log()
      .filter(({ msg }) => msg === 'The hardware security module: process is up')
      .map(({ child }) => Number(child));
  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  beforeAll(async () => {
    hsm.addToken('est');
    estuary = await Estuary.start(withKeysInHsm({ env: { OTHER_PIN: '0000' } }, hsm));
    made = readFileSync(join(estuary.dir, 'est.toml'), 'utf8');
  });
  beforeEach(() => writeFileSync(join(estuary.dir, 'est.toml'), made));
  afterAll(async () => {
    await estuary.stop();
    hsm.remove();
  });

  test('a change of the profile leaves the token alone', async () => {
    const before = children();
    const change: Change = (config) => (section(caSection(config), 'profile')['validity_days'] = 5);
    expect((await reload(estuary, change)).status).toBe(200);
    expect(await validity(estuary)).toBe(5);
    await estuary.outputSoFar();
    expect(children()).toEqual(before);
    expect(before.map(isAlive)).toEqual([true, true]);
  });

  test('what is replaced is closed when the requests that began with it have ended', async () => {
    expect((await reload(estuary)).status).toBe(200);
    const former = children();
    const { token } = await estuary.otp();
    const socket = await openTls(estuary.server.port('est'), { ca: estuary.root });
    const head =
      'POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nContent-Type: application/pkcs10\r\n' +
      `Authorization: Basic ${Buffer.from(`d:${token}`).toString('base64')}\r\nContent-Length: ${wire.length}\r\n\r\n`;
    socket.write(head + wire.slice(0, 50));
    // The head has come once a later request on another connection is answered.
    await estuary.est('cacerts');
    const before = children().length;
    const change: Change = (config) => (section(caSection(config), 'pkcs11')['max_sessions'] = 3);
    expect(await reload(estuary, change)).toMatchObject({ json: { changed: ['ca[devices].pkcs11.max_sessions'] } });
    await expect.poll(children, WAIT).toHaveLength(before + 1);
    await validity(estuary);
    expect(former.map(isAlive)).toEqual([true, true]);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
    socket.write(wire.slice(50));
    await expect.poll(() => answer, WAIT).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    // The CAs start at the same time, so the log does not tell which process is of which.
    await expect.poll(() => former.filter(isAlive), WAIT).toHaveLength(1);
  });

  test('a wrong PIN stops its label alone, until a reload with the right one', async () => {
    const statusOfLab = async (): Promise<number> => {
      const { token } = await estuary.otp();
      return (await estuary.enroll(wire, { password: token, path: 'lab/simpleenroll' })).status;
    };
    const reloaded = await reload(estuary, (config) => {
      section(caSection(config), 'profile')['validity_days'] = 3;
      section(caSection(config, 1), 'pkcs11')['pin_env'] = 'OTHER_PIN';
    });
    expect(reloaded.status).toBe(200);
    expect(await validity(estuary)).toBe(3);
    expect(await statusOfLab()).toBe(503);
    writeFileSync(join(estuary.dir, 'est.toml'), made);
    expect((await reload(estuary)).status).toBe(200);
    await expect.poll(statusOfLab, WAIT).toBe(200);
  });
});
