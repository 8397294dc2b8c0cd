/**
 * A PKCS#11 token for certificate keys: a TPM, a smart card, an HSM. Its library runs in OpenSC's `pkcs11-tool`, one
 * process per call, so that a hang or crash affects only that call.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { NULL, octetString, oid, sequence } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import type { SignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';
import type { TokenConfig } from '../config/schema.ts';
import type { Disk } from '../keep/disk.ts';

/** Sources of a token's PIN, read on use. */
interface PinSources {
  readonly disk: Pick<Disk, 'read'>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function tokenPin({ label, pin_file: file, pin_env: variable }: TokenConfig, { disk, env }: PinSources): string {
  const given = file === undefined ? env[variable ?? ''] : disk.read(file)?.replace(/^\uFEFF|\r?\n$/g, '');
  const isText = given !== undefined && given !== '' && !given.includes('\uFFFD');
  if (isText) return given;
  const where = file === undefined ? `the environment variable ${variable ?? ''}` : `the file ${file}`;
  const problem = given === undefined || given === '' ? 'missing or empty' : 'not UTF-8 text';
  throw unusable(label, `the PIN in ${where} is ${problem}`);
}

/** Operations of a token. CKA_ID (hex) identifies a key. */
export interface TokenKeys {
  /** @param keyType one of {@link TOKEN_KEY_TYPES}. @param label CKA_LABEL, for people */
  generate(keyType: string, id: string, label: string): Promise<void>;
  publicKey(id: string): Promise<Buffer>;
  sign(id: string, algorithm: SignatureAlgorithm, data: Buffer): Promise<Buffer>;
  /** The existing private keys. */
  list(): Promise<ReadonlySet<string>>;
  /** Removes both halves; idempotent. */
  destroy(id: string): Promise<void>;
}

/** Names in `pkcs11-tool`. */
const PAIRS: Readonly<Record<string, string>> = {
  'ec:P-256': 'EC:prime256v1',
  'ec:P-384': 'EC:secp384r1',
  'ec:P-521': 'EC:secp521r1',
  'rsa:2048': 'rsa:2048',
  'rsa:3072': 'rsa:3072',
  'rsa:4096': 'rsa:4096',
};

/** A TPM may take a minute for an RSA key. */
const TIMEOUT = 180_000;
const PIN_VARIABLE = 'ESTUARY_TOKEN_PIN';
/** Another attempt with this PIN may lock the token permanently, unless the token did not even look at it. */
const LOGIN_FAILED = /C_Login failed: rv = (?!CKR_(?:TOKEN_NOT_PRESENT|DEVICE_REMOVED|SESSION_))|CKR_PIN_/;
const LAST_ATTEMPT = /final user PIN try|user PIN locked/;

/** By token: the PIN that it rejected, which this process does not try again. */
const rejectedPins = new Map<string, string>();

export const hasRejectedPin = (): boolean => rejectedPins.size > 0;

/** @throws ClientError `KEY_UNUSABLE`, from every call */
export function openToken(config: TokenConfig, context: PinSources): TokenKeys {
  const { module, label } = config;
  const token = `${module}\0${label}`;
  let checked: Promise<void> | undefined;
  const tool = async (args: readonly string[], input: Buffer = Buffer.alloc(0)): Promise<Buffer> => {
    checked ??= notLastAttempt(module, label, context.env);
    await checked;
    const pin = tokenPin(config, context);
    if (rejectedPins.get(token) === pin)
      throw new ClientError('unauthenticated', 'KEY_UNUSABLE', `the token "${label}" has already rejected this PIN`);
    const all = ['--module', module, '--token-label', label, '--login', '--pin', `env:${PIN_VARIABLE}`, ...args];
    try {
      return await runTool(label, all, { ...context.env, [PIN_VARIABLE]: pin }, input);
    } catch (error) {
      if (error instanceof ClientError && error.kind === 'unauthenticated') rejectedPins.set(token, pin);
      throw error;
    }
  };
  const list = async (kind: 'privkey' | 'pubkey'): Promise<ReadonlySet<string>> => {
    const text = (await tool(['--list-objects', '--type', kind])).toString('latin1');
    return new Set(Array.from(text.matchAll(/^ +ID: +([0-9a-f]+)$/gm), ([, id = '']) => id));
  };
  return {
    async generate(keyType, id, keyLabel) {
      const pair = PAIRS[keyType];
      if (pair === undefined)
        throw unusable(label, `keys of the type ${keyType} are not supported (${Object.keys(PAIRS).join(', ')})`);
      const names = ['--id', id, '--label', keyLabel];
      await tool(['--keypairgen', '--key-type', pair, '--usage-sign', '--sensitive', ...names]);
    },
    async publicKey(id) {
      if ((await list('pubkey')).has(id)) return tool(['--read-object', '--type', 'pubkey', '--id', id]);
      // The next attempt creates a request with a new key.
      throw new ClientError('refused', 'KEY_UNUSABLE', `the token "${label}" does not have the key with the id ${id}`);
    },
    async sign(id, { scheme, hash, name }, data) {
      if (hash === undefined || (scheme !== 'ecdsa' && scheme !== 'rsa-pkcs1'))
        throw unusable(label, `signing requests with ${name} is not supported`);
      const digest = createHash(hash).update(data).digest();
      // Bare mechanisms, which every token has: RFC 8017 §9.2 for RSA; r and s as DER for ECDSA.
      const [how, value] =
        scheme === 'ecdsa'
          ? [['ECDSA', '--signature-format', 'openssl'], digest]
          : [['RSA-PKCS'], sequence(sequence(oid(OID[hash]), NULL), octetString(digest))];
      return tool(['--sign', '--id', id, '--mechanism', ...how], value);
    },
    list: () => list('privkey'),
    async destroy(id) {
      for (const kind of ['privkey', 'pubkey'] as const)
        if ((await list(kind)).has(id)) await tool(['--delete-object', '--type', kind, '--id', id]);
    },
  };
}

/** Stops before a wrong PIN locks the token, leaving the last attempt to a person. */
async function notLastAttempt(module: string, label: string, env: PinSources['env']): Promise<void> {
  const text = (await runTool(label, ['--module', module, '--list-token-slots'], env)).toString('utf8');
  const slot = text
    .split(/^Slot /m)
    .find((section) => /^ +token label +: (.*)$/m.exec(section)?.[1]?.trimEnd() === label);
  const flags = /^ +token flags +: (.*)$/m.exec(slot ?? '')?.[1] ?? '';
  if (LAST_ATTEMPT.test(flags))
    throw new ClientError(
      'unauthenticated',
      'KEY_UNUSABLE',
      `the token "${label}" is locked, or will be after one more wrong PIN. Log in once with another program`,
    );
}

function runTool(
  label: string,
  args: readonly string[],
  env: PinSources['env'],
  input: Buffer = Buffer.alloc(0),
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn('pkcs11-tool', args, { env: { ...env, LC_ALL: 'C' }, timeout: TIMEOUT, killSignal: 'SIGKILL' });
    const output: Buffer[] = [];
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => void output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString('utf8')).slice(-4096)));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.on('error', (error) =>
      reject(unusable(label, `pkcs11-tool cannot be started: ${error.message} (on Debian, install opensc)`, error)),
    );
    child.on('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(output));
      else if (LOGIN_FAILED.test(errors))
        reject(
          new ClientError(
            'unauthenticated',
            'KEY_UNUSABLE',
            `the token "${label}" rejects the PIN (${reason(errors)})`,
          ),
        );
      else reject(unusable(label, signal === null ? reason(errors) : `pkcs11-tool was killed by ${signal}`));
    });
  });
}

/** The relevant output line, or its CKR_… code. */
function reason(errors: string): string {
  const lines = errors.split('\n').filter((line) => line.trim() !== '' && line.trim() !== 'Aborting.');
  return /CKR_[A-Z0-9_]+/.exec(errors)?.[0] ?? (lines.map((line) => line.trim()).join('; ') || 'pkcs11-tool failed');
}

const unusable = (label: string, why: string, cause?: unknown): ClientError =>
  new ClientError('local', 'KEY_UNUSABLE', `the token "${label}": ${why}`, { cause });
