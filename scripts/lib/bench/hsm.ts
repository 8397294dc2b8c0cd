/**
 * Signatures per second: the file driver, the PKCS#11 driver, graphene-pk11 by itself and pkcs11-tool, on one machine
 * with SoftHSM2. Takes about a minute. scripts/bench-hsm describes its argument.
 */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSigner } from '../../../src/ca/local/signing.ts';
import { Pkcs11Signer } from '../../../src/ca/pkcs11/pkcs11-signer.ts';
import { publicKeyOf, tokenSignature } from '../../../src/ca/pkcs11/formats.ts';
import { findPrivateKey, findToken, mechanismsOf, openSession } from '../../../src/ca/pkcs11/token.ts';
import { TOKEN_KEY_TYPES } from '../../../src/ca/pkcs11/wire.ts';
import type { TokenKeyType } from '../../../src/ca/pkcs11/wire.ts';

const MODULE = '/usr/lib/softhsm/libsofthsm2.so';
const PIN = 'bench-pin';
const SESSIONS = 8;
const WINDOW_MS = Number(process.argv[2] ?? '3') * 1000;
/** About the size of an end entity's TBSCertificate. */
const TBS = randomBytes(500);

const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
const SOFTHSM2_CONF = join(folder, 'softhsm2.conf');
mkdirSync(join(folder, 'tokens'));
writeFileSync(SOFTHSM2_CONF, `directories.tokendir = ${join(folder, 'tokens')}\nlog.level = ERROR\n`);
// One column loads the module into this process.
process.env['SOFTHSM2_CONF'] = SOFTHSM2_CONF;

const access = { module: MODULE, token_label: 'bench', pin: PIN };
const tool = (...args: string[]): void => {
  const login = ['--module', MODULE, '--token-label', 'bench', '--login', '--pin', PIN];
  execFileSync('pkcs11-tool', [...login, ...args], { stdio: 'pipe' });
};

/** Signatures per second with `lanes` callers who each wait for their signature. */
async function rate(lanes: number, sign: () => Promise<unknown>): Promise<number> {
  for (let i = 0; i < 3; i += 1) await sign();
  const start = performance.now();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() < start + WINDOW_MS) {
      await sign();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return count / ((performance.now() - start) / 1000);
}

function fileSigner(type: ToolType): FileSigner {
  const { privateKey } = type.startsWith('rsa:')
    ? generateKeyPairSync('rsa', { modulusLength: Number(type.slice(4)) })
    : generateKeyPairSync('ec', { namedCurve: type.slice(3) });
  return new FileSigner(privateKey);
}

async function driver(key_label: string): Promise<Pkcs11Signer> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const env = { SOFTHSM2_CONF };
  const options = { ...access, key_label, max_sessions: SESSIONS, timeout: 10, env, retryAfter: 1, log };
  const signer = new Pkcs11Signer(options);
  await signer.start();
  return signer;
}

/** graphene-pk11 in a loop, blocking, as a program of its own would. */
async function graphene(key_label: string): Promise<number> {
  const token = await findToken(access);
  try {
    const session = openSession(token, PIN, 'read-only');
    const key = findPrivateKey(token, session, { key_label });
    const how = tokenSignature(publicKeyOf(token, session, key) ?? Buffer.alloc(0), mechanismsOf(token));
    const output = Buffer.alloc(2048);
    return await rate(1, () => {
      session.lib.C_SignInit(session.handle, { mechanism: how.mechanism }, key.handle);
      return Promise.resolve(how.output(session.lib.C_Sign(session.handle, how.input(TBS), output)));
    });
  } finally {
    token.module.finalize();
  }
}

interface ToolKey {
  readonly type: string;
  readonly mechanism: string;
  /** Bytes of a hash, or of a DigestInfo: pkcs11-tool 0.23 gives SoftHSM2 more in pieces, which it refuses. */
  readonly input: number;
}

/** Of the types that pkcs11-tool and SoftHSM2 make. */
const TOOL_KEYS = {
  'ec:P-256': { type: 'EC:prime256v1', mechanism: 'ECDSA', input: 32 },
  'ec:P-384': { type: 'EC:secp384r1', mechanism: 'ECDSA', input: 48 },
  'rsa:2048': { type: 'rsa:2048', mechanism: 'RSA-PKCS', input: 51 },
  'rsa:3072': { type: 'rsa:3072', mechanism: 'RSA-PKCS', input: 51 },
  'rsa:4096': { type: 'rsa:4096', mechanism: 'RSA-PKCS', input: 51 },
} satisfies Partial<Record<TokenKeyType, ToolKey>>;

type ToolType = keyof typeof TOOL_KEYS;
const isToolType = (type: TokenKeyType): type is ToolType => type in TOOL_KEYS;

/** One process for every signature, as a shell script would; NaN where the tool and the token do not get on. */
function pkcs11Tool(type: ToolType): Promise<number> {
  const { mechanism } = TOOL_KEYS[type];
  const [input, output] = [join(folder, 'tbs'), join(folder, 'signature')];
  writeFileSync(input, TBS.subarray(0, TOOL_KEYS[type].input));
  return rate(1, () => {
    tool('--sign', '--mechanism', mechanism, '--label', type, '--input-file', input, '--output-file', output);
    return Promise.resolve();
  }).catch(() => NaN);
}

async function measure(type: ToolType): Promise<number[]> {
  tool('--keypairgen', '--key-type', TOOL_KEYS[type].type, '--label', type, '--id', randomBytes(4).toString('hex'));
  const file = fileSigner(type);
  const byFile = await rate(SESSIONS, () => file.sign(TBS));
  const hsm = await driver(type);
  const one = await rate(1, () => hsm.sign(TBS));
  const many = await rate(SESSIONS, () => hsm.sign(TBS));
  await hsm.close();
  return [byFile, many, one, await graphene(type), await pkcs11Tool(type)];
}

const rounded = (n: number): string =>
  Number.isNaN(n) ? 'fails' : String(n < 100 ? Math.round(n) : Math.round(n / 10) * 10);

try {
  const init = ['--init-token', '--free', '--label', 'bench', '--pin', PIN, '--so-pin', PIN];
  execFileSync('softhsm2-util', init, { stdio: 'pipe' });
  const columns = [
    'key',
    'file driver, 8 at once',
    'PKCS#11 driver, 8 at once',
    'PKCS#11 driver, 1',
    'graphene-pk11, 1',
  ];
  process.stdout.write(`| ${columns.join(' | ')} | pkcs11-tool, 1 |\n| --- | ---: | ---: | ---: | ---: | ---: |\n`);
  for (const type of TOKEN_KEY_TYPES.filter(isToolType))
    process.stdout.write(`| ${type} | ${(await measure(type)).map(rounded).join(' | ')} |\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
