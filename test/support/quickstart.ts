/** A server in the configuration that `scripts/quickstart` writes: the one real clients have to get on with. */
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { run, runText } from './command.ts';
import { temporaryFolder } from './openssl.ts';
import { SHARED_FOLDER } from './postgres.ts';
import { OPENSSL_35 } from './requires.ts';
import { ROOT } from './root.ts';
import { type ServerProcess, startServer } from './server-process.ts';

export const QUICKSTART = join(ROOT, 'scripts', 'quickstart');

export interface IssuedCertificate {
  /** Lower-case hex. */
  readonly serial: string;
  /** As the admin API records it. */
  readonly record: Readonly<Record<string, unknown>>;
}

export interface Quickstart {
  readonly server: ServerProcess;
  /** A path in the quickstart's folder, e.g. `ca/root.pem`. */
  file(name: string): string;
  /** `localhost:PORT` of the EST listener. */
  readonly host: string;
  /** `https://localhost:PORT/.well-known/est` */
  readonly est: string;
  /** Makes a one-time password over the admin API, with curl. */
  createOtp(clientId: string): Promise<string>;
  /** What the admin API answers, with curl. */
  admin(path: string): Promise<unknown>;
  /**
   * Checks with openssl that the PEM file holds one certificate of the CA for this subject and key, and with the admin
   * API that it is recorded.
   *
   * @param expected.key PEM file of the private key
   * @param expected.issuer path of the issuing CA's certificate; that of `devices` unless told
   */
  check(certificate: string, expected: { subject: string; key: string; issuer?: string }): Promise<IssuedCertificate>;
  /** Stops the server and removes everything. */
  stop(): Promise<void>;
}

export interface QuickstartOptions {
  /** TOML sections put before those of the quickstart's est.toml. */
  readonly sections?: string;
  /** Changes the est.toml that the quickstart wrote in `dir`, and what else stands there. */
  readonly configure?: (toml: string, dir: string) => string;
  /** Added to the server's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How many folders the current test process has asked for, by algorithm. */
const counts = new Map<string, number>();

/** Servers of one process have different CAs unless there are more than these. */
const DIFFERENT = 4;

/**
 * Fills a folder as `scripts/quickstart` does, for a server on ports that the kernel chooses. The script takes most of a second of CPU, so
 * the files of a run copy what it has made once.
 *
 * @param algorithm one of ML-DSA, with OpenSSL 3.5
 * @param more added to the script's environment, which then runs for this folder alone
 */
export async function makeQuickstart(
  folder: string,
  algorithm = 'p-256',
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const common = process.env[SHARED_FOLDER];
  if (common === undefined || Object.keys(more).length > 0) return runQuickstart(folder, algorithm, more);
  const count = counts.get(algorithm) ?? 0;
  counts.set(algorithm, count + 1);
  const original = join(common, `quickstart-${algorithm}-${count % DIFFERENT}`);
  if (!existsSync(original)) {
    const made = await mkdtemp(`${original}-`);
    await runQuickstart(made, algorithm, more);
    // Another process may have been faster.
    await rename(made, original).catch(() => rm(made, { recursive: true }));
  }
  await cp(original, folder, { recursive: true });
}

async function runQuickstart(folder: string, algorithm: string, more: Readonly<Record<string, string>>): Promise<void> {
  const ports = ['--est-port', '0', '--admin-port', '0'];
  const env = algorithm === 'p-256' ? {} : { PATH: `${dirname(OPENSSL_35)}:${process.env['PATH'] ?? ''}` };
  await run(QUICKSTART, ['--no-start', '--dir', folder, '--algorithm', algorithm, ...ports], {
    timeout: 110_000,
    env: { ...env, ...more },
  });
}

/** Makes a quickstart folder under the temporary one, on ports that the kernel chooses, and starts the built server. */
export async function startQuickstart({
  sections = '',
  configure = (toml) => toml,
  env = {},
}: QuickstartOptions = {}): Promise<Quickstart> {
  const folder = temporaryFolder();
  try {
    await makeQuickstart(folder.path);
    const config = folder.file('est.toml');
    await writeFile(config, `${sections}\n${configure(await readFile(config, 'utf8'), folder.path)}`);
    const server = await startServer({ config, env });
    return quickstart(folder, server);
  } catch (error) {
    folder.remove();
    throw error;
  }
}

function quickstart(folder: ReturnType<typeof temporaryFolder>, server: ServerProcess): Quickstart {
  const host = `localhost:${server.port('est')}`;
  const file = (name: string): string => folder.file(name);

  function admin(path: string, ...more: string[]): Promise<unknown> {
    return curlAdmin(server.port('admin'), file, path, more);
  }

  return {
    server,
    file,
    host,
    est: `https://${host}/.well-known/est`,
    admin: (path) => admin(path),
    async createOtp(clientId) {
      const body = JSON.stringify({ client_id: clientId });
      const answer = await admin('/admin/otp', '-H', 'Content-Type: application/json', '-d', body);
      return text(answer, 'token');
    },
    async check(certificate, expected) {
      const serial = await checkWithOpenssl(certificate, { issuer: file('ca/issuing.pem'), ...expected }, file);
      const record = await admin(`/admin/certificates/${serial}`);
      if (!isRecord(record)) throw new Error('the admin API did not answer with a record');
      expect(record['status']).toBe('valid');
      return { serial, record };
    },
    async stop() {
      await server.stop();
      folder.remove();
    },
  };
}

async function curlAdmin(
  port: number,
  file: (name: string) => string,
  path: string,
  more: readonly string[],
): Promise<unknown> {
  const token = await runText('cat', [file('admin/token')]);
  const base = ['-sS', '--fail-with-body', '--noproxy', '*', '--cacert', file('ca/root.pem')];
  const url = `https://localhost:${port}${path}`;
  const answer = await runText('curl', [...base, '-H', `Authorization: Bearer ${token}`, ...more, url]);
  return JSON.parse(answer);
}

async function checkWithOpenssl(
  certificate: string,
  expected: { subject: string; key: string; issuer: string },
  file: (name: string) => string,
): Promise<string> {
  const chain = ['-CAfile', file('ca/root.pem'), '-untrusted', expected.issuer];
  await run('openssl', ['verify', '-x509_strict', '-purpose', 'sslclient', ...chain, certificate]);
  const x509 = (...args: string[]): Promise<string> =>
    runText('openssl', ['x509', '-in', certificate, '-noout', ...args]);
  expect((await x509('-subject', '-nameopt', 'RFC2253')).trim()).toBe(`subject=${expected.subject}`);
  expect(await x509('-pubkey')).toBe(await runText('openssl', ['pkey', '-in', expected.key, '-pubout']));
  const issuer = await runText('openssl', ['x509', '-in', expected.issuer, '-noout', '-subject']);
  expect((await x509('-issuer')).replace('issuer', 'subject')).toBe(issuer);
  return (await x509('-serial')).trim().replace('serial=', '').toLowerCase();
}

/** A text member of a JSON object. */
function text(value: unknown, name: string): string {
  const member = isRecord(value) ? value[name] : undefined;
  if (typeof member !== 'string') throw new Error(`no ${name} in ${JSON.stringify(value)}`);
  return member;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
