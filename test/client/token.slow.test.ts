/** Keys that are generated in a PKCS#11 token and stay there. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ClientError } from '../../src/client/client-error.ts';
import { idOfKeyUri } from '../../src/client/token/key-uri.ts';
import { makeCa, type Issuer } from '../support/certificates.ts';
import { ClientWorld, configOf, DAY, START } from '../support/client-world.ts';
import { runText, type CommandResult } from '../support/command.ts';
import {
  clientFolder,
  estuaryClient,
  liveCertificate,
  liveVersion,
  type ClientFolder,
} from '../support/estuary-client.ts';
import { Estuary } from '../support/estuary.ts';
import { buildShim } from '../support/pkcs11-shim.ts';
import { findCommand, requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { PIN, SOFTHSM_MODULE, softHsm, type SoftHsm } from '../support/softhsm.ts';
import { until } from '../support/until.ts';

const HOUR = 3_600_000;

describe('keys in a token, in virtual time', () => {
  test('with the key in a token, killed at each of its steps, a client leaves one key there, that of its certificate', async () => {
    const config = configOf({ key_store: 'token' }, { token: { module: '/p11.so', label: 'tpm', pin_env: 'OTP' } });
    const start = (issuer: Issuer): ClientWorld => {
      const world = new ClientWorld(issuer);
      world.config = config;
      return world;
    };
    const issuer = await makeCa('CN=Root 1', { notBefore: START - DAY });
    const whole = start(issuer);
    whole.lives = 1e9;
    await whole.step();
    await whole.step('renew');
    const steps = 1e9 - whole.lives;
    expect([steps > 60, whole.tokenKeys.size]).toEqual([true, 1]);
    for (let killedAt = 0; killedAt < steps; killedAt++) {
      const world = start(issuer);
      world.lives = killedAt;
      await world.step();
      if (world.lives >= 0) await world.step('renew');
      world.assertWhole();
      world.lives = Infinity;
      await world.until(world.now + HOUR);
      world.assertWhole();
      expect(world.text(`versions/${world.live?.version ?? 0}/key.pem`)).toBeUndefined();
      const live = world.live?.certificate.spki.toString('hex');
      expect(
        [...world.tokenKeys.values()].map(({ spki }) => spki.toString('hex')),
        `killed at ${killedAt}`,
      ).toEqual([live]);
      expect(new Set(world.hooks).size).toBe(world.issued.length);
    }
  });

  test('the former key stays in the token until the hook has told programs of the new one', async () => {
    const world = await ClientWorld.make();
    world.config = configOf({ key_store: 'token' }, { token: { module: '/p11.so', label: 'tpm', pin_env: 'OTP' } });
    await world.step();
    world.hook = () => {
      throw new ClientError('local', 'HOOK_FAILED', '"hook" ended with 1');
    };
    await world.step('renew');
    expect([world.live?.version, world.tokenKeys.size]).toEqual([2, 2]);
    world.hook = () => undefined;
    await world.until(world.now + HOUR);
    expect(world.tokenKeys.size).toBe(1);
  });
});

describe.skipIf(!requires('softhsm', 'tokenTls'))('keys in SoftHSM2', () => {
  let estuary: Estuary;
  let hsm: SoftHsm;
  let server: Record<string, string>;

  beforeAll(async () => {
    estuary = await Estuary.start();
    hsm = softHsm();
    hsm.addToken('device');
    writeFileSync(join(estuary.dir, 'pin'), `${PIN}\n`, { mode: 0o600 });
    server = {
      url: `https://localhost:${estuary.server.port('est')}`,
      trust_anchors: join(estuary.dir, 'ca/root.pem'),
    };
  });
  afterAll(async () => {
    hsm.remove();
    await estuary.stop();
  });

  const tokenTable = (): Record<string, string> => ({
    module: SOFTHSM_MODULE,
    label: 'device',
    pin_file: join(estuary.dir, 'pin'),
  });

  /** A folder with a client.toml, and a password for its name. */
  async function device(
    name: string,
    more: Record<string, string | boolean> = {},
    document: Record<string, Record<string, string>> = {},
  ): Promise<ClientFolder> {
    const { token } = await estuary.otp({ client_id: name });
    const file = join(estuary.dir, `${name}.otp`);
    writeFileSync(file, token, { mode: 0o600 });
    const certificate = { subject: `CN=${name}`, otp_file: file, key_store: 'token', ...more };
    return clientFolder(estuary.dir, `token-${name}`, server, certificate, { token: tokenTable(), ...document });
  }

  const client = (...args: string[]): Promise<CommandResult> => estuaryClient(args, hsm.env);
  const keyId = (path: string): string => idOfKeyUri(readFileSync(join(path, 'live/key.uri'), 'latin1')) ?? '';
  /** The private keys of a label, as OpenSC lists them. */
  async function keys(label: string): Promise<string[]> {
    const list = await hsm.tool('device', '--list-objects', '--type', 'privkey');
    return list
      .split(/^(?=Private Key Object)/m)
      .filter((section) => new RegExp(`label: +${label}$`, 'm').test(section));
  }

  test.each(['TLSv1.2', 'TLSv1.3'])(
    'enroll and renew over %s: each key is made in the token, and one is left',
    async (version) => {
      const name = `dev-${version.slice(-1)}`;
      server['max_version'] = version;
      const { path, config } = await device(name, { channel_binding: 'always' });
      Reflect.deleteProperty(server, 'max_version');
      const enrolled = await client('enroll', '--config', config);
      expect([enrolled.code, enrolled.output]).toEqual([0, expect.stringContaining('has a new certificate')]);
      const first = { id: keyId(path), spki: liveCertificate(path).spki };
      expect(existsSync(join(path, 'live/key.pem'))).toBe(false);
      for (const expected of [2, 3]) {
        const renewed = await client('renew', '--config', config, '--force');
        expect([renewed.code, renewed.output]).toEqual([0, expect.stringContaining('has a new certificate')]);
        expect(liveVersion(path)).toBe(expected);
      }
      expect(liveCertificate(path).spki.equals(first.spki)).toBe(false);
      const [key = '', ...more] = await keys(`token-${name}`);
      expect(more).toEqual([]);
      expect(key).toContain('never extractable');
      expect(key).toContain(keyId(path));
      expect(keyId(path)).not.toBe(first.id);
      // The public half in the token is that of the certificate.
      const spki = hsm.file(`${name}.der`);
      await hsm.tool('device', '--read-object', '--type', 'pubkey', '--id', keyId(path), '--output-file', spki);
      expect(readFileSync(spki).equals(liveCertificate(path).spki)).toBe(true);
    },
  );

  test('rsa:2048, and the options of the command line', async () => {
    const { token } = await estuary.otp({ client_id: 'rsa' });
    const out = join(estuary.dir, 'token-rsa');
    const root = new X509Certificate(estuary.root).fingerprint256;
    const options = { url: server['url'], out, subject: 'CN=rsa', 'ca-fingerprint': root, 'otp-env': 'OTP' };
    const keyOptions = {
      'pkcs11-module': SOFTHSM_MODULE,
      token: 'device',
      'pin-env': 'TOKEN_PIN',
      'key-type': 'rsa:2048',
    };
    const args = Object.entries({ ...options, ...keyOptions }).flatMap(([name, value]) => [`--${name}`, value ?? '']);
    const env = { ...hsm.env, OTP: token, TOKEN_PIN: PIN };
    const enrolled = await estuaryClient(['enroll', ...args], env);
    expect([enrolled.code, enrolled.output]).toEqual([0, expect.stringContaining('has a new certificate')]);
    const renewed = await estuaryClient(['renew', '--config', join(out, 'client.toml'), '--force'], env);
    expect([renewed.code, renewed.output]).toEqual([0, expect.stringContaining('has a new certificate')]);
    expect(readFileSync(join(out, 'client.toml'), 'utf8')).not.toContain(PIN);
  });

  test('a wrong PIN is refused by the token once, and told to nobody', async () => {
    const { path, config } = await device('pin');
    expect((await client('enroll', '--config', config)).code).toBe(0);
    writeFileSync(join(estuary.dir, 'pin'), 'another-pin-0815\n');
    const { code, output } = await client('renew', '--config', config, '--force');
    writeFileSync(join(estuary.dir, 'pin'), `${PIN}\n`);
    expect([code, output]).toEqual([
      1,
      expect.stringContaining('the token "device" rejects the PIN (CKR_PIN_INCORRECT)'),
    ]);
    expect(output).not.toContain('another-pin');
    expect(readFileSync(join(path, 'state.json'), 'utf8')).not.toContain('another-pin');
    expect(liveVersion(path)).toBe(1);
  });

  test.skipIf(!requires('pkcs11Shim'))(
    'a token of three tries that does not say how many are left: one process tries a wrong PIN once, for all certificates',
    async () => {
      const [pin, log] = [hsm.file('wrong-pin'), hsm.file('shim.log')];
      writeFileSync(pin, 'another-pin-0815\n');
      const token = { module: buildShim(hsm), label: 'device', pin_file: pin };
      const { path, config } = await device('tries', {}, { token });
      const text = readFileSync(config, 'utf8');
      writeFileSync(config, text + text.slice(text.indexOf('[[certificate]]')).replaceAll(path, `${path}-2`));
      const env = { ...hsm.env, SHIM_LOG: log };
      const logins = (): number => (readFileSync(log, 'utf8').match(/C_Login/g) ?? []).length;
      // The daemon, for the processes of its steps.
      const daemon = spawn(NODE, [SERVER, 'client', 'run', '--config', config], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      try {
        let said = '';
        daemon.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()));
        await until('its decision', () => said.includes('which is not tried again'));
        expect(logins()).toBe(1);
      } finally {
        const ended = new Promise((resolve) => daemon.once('exit', resolve));
        daemon.kill('SIGTERM');
        await ended;
      }
      const { code, output } = await estuaryClient(['enroll', '--config', config], env);
      expect([code, logins()]).toEqual([1, 2]);
      expect(output).toContain('the token "device" rejects the PIN (CKR_PIN_INCORRECT)');
      expect(output).toContain('the token "device" has already rejected this PIN');
    },
  );

  test('killed when the key is made and nothing else, the next process goes on, and no key is forgotten in the token', async () => {
    const { path, config } = await device('killed');
    const bin = join(estuary.dir, 'killing-bin');
    mkdirSync(bin);
    const tool = findCommand('pkcs11-tool') ?? '';
    const script = `#!/bin/sh\n${tool} "$@"; code=$?\ncase "$*" in *--keypairgen*) kill -9 $PPID;; esac\nexit $code\n`;
    writeFileSync(join(bin, 'pkcs11-tool'), script);
    chmodSync(join(bin, 'pkcs11-tool'), 0o755);
    const env = { ...hsm.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    expect((await estuaryClient(['enroll', '--config', config], env)).code).toBe(-1);
    expect([await keys('token-killed').then(({ length }) => length), existsSync(join(path, 'live'))]).toEqual([
      1,
      false,
    ]);
    const { code, output } = await client('enroll', '--config', config);
    expect([code, output]).toEqual([0, expect.stringContaining('has a new certificate')]);
    const [key = '', ...more] = await keys('token-killed');
    expect([key.includes(keyId(path)), more]).toEqual([true, []]);
  });

  test('an IDevID whose key is in the token', async () => {
    const idevid = await device('idevid');
    expect((await client('enroll', '--config', idevid.config)).code).toBe(0);
    const live = join(idevid.path, 'live');
    const { config } = clientFolder(
      estuary.dir,
      'token-ldevid',
      server,
      {
        subject: 'CN=idevid',
        certificate: join(live, 'fullchain.pem'),
        private_key: readFileSync(join(live, 'key.uri'), 'latin1').trim(),
      },
      { token: tokenTable() },
    );
    const { code, output } = await client('enroll', '--config', config);
    expect([code, output]).toEqual([0, expect.stringContaining('has a new certificate')]);
    expect(existsSync(join(estuary.dir, 'token-ldevid/live/key.pem'))).toBe(true);
  });

  test('run makes each step in a separate process', async () => {
    const { path, config } = await device('daemon');
    const daemon = spawn(NODE, [SERVER, 'client', 'run', '--config', config], {
      env: { ...process.env, ...hsm.env },
      stdio: 'ignore',
    });
    try {
      await vi.waitFor(() => expect(existsSync(join(path, 'live/key.uri'))).toBe(true), {
        timeout: 60_000,
        interval: 200,
      });
      const maps = await runText('cat', [`/proc/${daemon.pid ?? 0}/maps`]);
      expect(maps).not.toContain('softhsm');
    } finally {
      const ended = new Promise((resolve) => daemon.once('exit', resolve));
      daemon.kill('SIGTERM');
      await ended;
    }
    expect(liveVersion(path)).toBe(1);
  });
});
