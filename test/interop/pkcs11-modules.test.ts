/**
 * PKCS #11 modules of other projects: the key is created in the token, eight sign at the same time, and signing goes on
 * after a restart of the process behind the module.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateKey } from '../../src/ca/pkcs11/generate-key.ts';
import { Pkcs11Signer } from '../../src/ca/pkcs11/pkcs11-signer.ts';
import type { TokenAccess, TokenKeyType } from '../../src/ca/pkcs11/wire.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { parseSignatureAlgorithm, verifySignature } from '../../src/pki/x509/signature-algorithms.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
import { Opencryptoki, OPENCRYPTOKI_LABEL, OPENCRYPTOKI_PIN } from '../support/opencryptoki.ts';
import { LIBRARIES, requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { PIN, SOFTHSM_MODULE, softHsm, type SoftHsm } from '../support/softhsm.ts';
import { softwareTpm } from '../support/software-tpm.ts';
import { until } from '../support/until.ts';

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe.skipIf(!requires('softhsm', 'certutil', 'p11kit', 'softwareTpm'))('a key in the token of', () => {
  let hsm: SoftHsm;

  beforeAll(() => {
    hsm = softHsm();
    hsm.addToken('est');
  });
  afterAll(() => hsm.remove());

  async function expectToWork(
    access: TokenAccess,
    type: TokenKeyType,
    more: Readonly<Record<string, string>> = {},
    { restart, leftOut = [] }: { readonly restart?: () => Promise<void>; readonly leftOut?: readonly string[] } = {},
  ): Promise<void> {
    const env = { ...process.env, ...hsm.env, ...more };
    const name = `issuing ${type} ${Object.keys(more).join()}`;
    const order = { access, reference: { key_label: name }, type, label: name };
    await expect(generateKey(order, env, () => undefined)).resolves.toMatchObject({ label: name, leftOut });
    const common = { max_sessions: 8, timeout: 60, retryAfter: 1, env, log: QUIET };
    const signer = new Pkcs11Signer({ ...access, key_label: name, ...common });
    try {
      await signer.start();
      const algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
      const sign = async (): Promise<boolean> => {
        const tbs = Buffer.from('a certificate');
        return verifySignature(algorithm, parsePublicKey(signer.spki), tbs, await signer.sign(tbs));
      };
      expect(await Promise.all(Array.from({ length: 24 }, sign))).not.toContain(false);
      if (restart !== undefined) {
        await restart();
        await until('a signature after the restart', () => sign().catch(() => false));
      }
      expect(await signer.health()).toEqual({ health: 'ok' });
    } finally {
      await signer.close();
    }
  }

  /** A CA of the built server: `ca init` creates its key, and devices enroll, eight at the same time. */
  async function expectToEnroll(
    { pin, module, token_label = '', library_parameters }: TokenAccess,
    type: TokenKeyType,
    more: Readonly<Record<string, string>> = {},
    { restart, node = NODE }: { readonly restart?: () => Promise<void>; readonly node?: string } = {},
  ): Promise<void> {
    const env = { ...hsm.env, ...more, TEST_HSM_PIN: pin ?? '' };
    const pkcs11 = {
      ...{ module, token_label, key_label: `ca ${type} ${Object.values(more).join()}`, timeout: 60 },
      ...(pin === undefined ? {} : { pin_env: 'TEST_HSM_PIN' }),
      ...(library_parameters === undefined ? {} : { library_parameters }),
    };
    const ca = { label: 'token', driver: 'pkcs11', certificate: 'ca/token.pem', pkcs11, profile: {} };
    const estuary = await Estuary.start({
      env,
      node,
      configure: (config, dir) => {
        config['ca'] = [...(Array.isArray(config['ca']) ? config['ca'] : []), ca];
        const file = join(dir, 'init.toml');
        writeFileSync(file, stringify(config));
        const args = ['--ca', 'token', '--key-type', type, '--subject', 'CN=Token', '--days', '30'];
        const command = [SERVER, 'ca', 'init', '--config', file, ...args];
        execFileSync(node, command, { env: { ...process.env, ...env }, timeout: 120_000, stdio: 'pipe' });
      },
    });
    try {
      const key = makeKey();
      const { token: password } = await estuary.otp({ max_uses: 100 });
      const enroll = async (): Promise<number> =>
        (await estuary.enroll(onTheWire(simpleCsr(key, 'device')), { password, path: 'token/simpleenroll' })).status;
      expect(new Set(await Promise.all(Array.from({ length: 8 }, enroll)))).toEqual(new Set([200]));
      if (restart !== undefined) {
        await restart();
        await until('an enrollment after the restart', async () => (await enroll()) === 200);
      }
      expect((await estuary.est('token/crls')).status).toBe(200);
    } finally {
      await estuary.stop();
    }
  }

  const types = ['ec:P-256', 'ec:P-384', 'rsa:2048'] as const;

  test.each(types)('NSS softokn without a password: %s', async (type) => {
    const folder = hsm.file(`nss-${type}`);
    mkdirSync(folder);
    execFileSync('certutil', ['-N', '-d', `sql:${folder}`, '--empty-password'], { timeout: 60_000, stdio: 'pipe' });
    const library_parameters = `configDir='sql:${folder}' certPrefix='' keyPrefix='' secmod='secmod.db' flags=`;
    const module = join(LIBRARIES, 'libsoftokn3.so');
    await expectToWork({ module, library_parameters, token_label: 'NSS Certificate DB' }, type);
    if (type === 'ec:P-256')
      await expectToEnroll({ module, library_parameters, token_label: 'NSS Certificate DB' }, type);
  });

  test('a TPM, which sets CKA_DECRYPT of each key, also after its restart', async () => {
    const tpm = await softwareTpm({ label: 'est', pin: PIN });
    try {
      const access = { module: join(LIBRARIES, 'libtpm2_pkcs11.so.1'), token_label: 'est', pin: PIN };
      const leftOut = ['CKA_DECRYPT false', 'CKA_UNWRAP false'];
      const restart = () => tpm.restart();
      for (const type of types) await expectToWork(access, type, tpm.env, { leftOut, restart });
      await expectToEnroll(access, 'ec:P-256', tpm.env, { restart });
    } finally {
      await tpm.stop();
    }
  });

  test.skipIf(!requires('opencryptoki', 'root'))(
    "opencryptoki's soft token, also after a restart of its daemon",
    async () => {
      const folder = hsm.file('opencryptoki');
      mkdirSync(folder);
      const opencryptoki = await Opencryptoki.start(folder);
      try {
        const access = { module: join(LIBRARIES, 'pkcs11/libopencryptoki.so'), token_label: OPENCRYPTOKI_LABEL };
        const restart = () => opencryptoki.restart();
        const { node } = opencryptoki;
        await expectToEnroll({ ...access, pin: OPENCRYPTOKI_PIN }, 'rsa:2048', {}, { restart, node });
      } finally {
        await opencryptoki.stop();
      }
    },
  );

  const proxy = { module: join(LIBRARIES, 'p11-kit-proxy.so'), token_label: 'est', pin: PIN };

  test.each([
    ['module', SOFTHSM_MODULE],
    ['remote', '|p11-kit remote'],
  ])('p11-kit-proxy with "%s: %s", also after the end of the process behind it', async (key, module) => {
    const folder = hsm.file(`p11-${key}`);
    mkdirSync(join(folder, 'pkcs11/modules'), { recursive: true });
    // The shell notes its process ID, and becomes p11-kit.
    const [remote, pids] = [join(folder, 'remote'), join(folder, 'pids')];
    writeFileSync(remote, `#!/bin/sh\necho $$ >> ${pids}\nexec p11-kit remote ${SOFTHSM_MODULE}\n`, { mode: 0o755 });
    writeFileSync(join(folder, 'pkcs11/pkcs11.conf'), 'user-config: only\n');
    const value = key === 'remote' ? `|${remote}` : module;
    writeFileSync(join(folder, 'pkcs11/modules/softhsm.module'), `${key}: ${value}\n`);
    // p11-kit ignores the user's folder in processes of root.
    const node = join(folder, 'node');
    const mount = `mount --bind ${folder}/pkcs11/modules /usr/share/p11-kit/modules`;
    writeFileSync(node, `#!/bin/sh\nexec unshare --mount sh -c '${mount} && exec "$0" "$@"' ${NODE} "$@"\n`, {
      mode: 0o755,
    });
    const restart = async (): Promise<void> => {
      const last = Number(readFileSync(pids, 'utf8').trim().split('\n').at(-1));
      process.kill(last, 'SIGKILL');
      await until('its end', () => !existsSync(`/proc/${last}/exe`));
    };
    const options = { ...(requires('root') ? { node } : {}), ...(key === 'remote' ? { restart } : {}) };
    await expectToEnroll(proxy, 'ec:P-256', { XDG_CONFIG_HOME: folder }, options);
  });

  test('p11-kit server, also after its restart', async () => {
    const socket = hsm.file('p11.socket');
    let server: ChildProcess | undefined;
    const stop = async (): Promise<void> => {
      const ended = new Promise((resolve) => server?.once('exit', resolve));
      server?.kill();
      await ended;
    };
    const start = async (): Promise<void> => {
      const args = ['server', '-f', '-n', socket, '--provider', SOFTHSM_MODULE, 'pkcs11:token=est'];
      server = spawn('p11-kit', args, { env: { ...process.env, ...hsm.env }, stdio: 'ignore' });
      await until('the socket', () => existsSync(socket));
    };
    await start();
    try {
      const module = join(LIBRARIES, 'pkcs11/p11-kit-client.so');
      const env = { P11_KIT_SERVER_ADDRESS: `unix:path=${socket}` };
      const restart = async (): Promise<void> => {
        await stop();
        await start();
      };
      await expectToWork({ ...proxy, module }, 'ec:P-384', env, { restart });
      await expectToEnroll({ ...proxy, module }, 'ec:P-384', env, { restart });
    } finally {
      await stop();
    }
  });
});
