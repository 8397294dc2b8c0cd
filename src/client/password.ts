/**
 * The password of a first enrollment: from a file, the environment or the terminal. It is read when a server requests
 * it.
 */
import { scryptSync, timingSafeEqual } from 'node:crypto';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import type { ReadPassword } from './http/authentication.ts';

/** @returns undefined without a password or a terminal */
export function passwordOf(config: CertificateConfig, context: ClientContext): ReadPassword | undefined {
  const { ask } = context;
  if (isStored(config)) return () => Promise.resolve(storedPassword(config, context));
  if (ask === undefined) return undefined;
  return () => ask(`One-time password for ${config.name}: `, { secret: true });
}

/**
 * {@link passwordOf} without a password that already got a certificate, unless `otp_reusable` is set: the server
 * rejects a used one-time password, and rejections lock out the client's address.
 * @param spent a {@link spentRecord} for each password that got a certificate
 */
export function freshPassword(
  config: CertificateConfig,
  context: ClientContext,
  spent: readonly string[],
): ReadPassword | undefined {
  if (!isStored(config)) return passwordOf(config, context);
  return () => {
    const password = readStored(config, context);
    const isSpent = !config.otp_reusable && spent.some((record) => matches(password, record));
    return Promise.resolve(password === '' || isSpent ? undefined : password);
  };
}

/** Whether the stored password differs from those of the records: somebody put a new one there. */
export function hasNewPassword(
  config: CertificateConfig,
  context: Pick<ClientContext, 'disk' | 'env'>,
  former: readonly string[],
): boolean {
  const password = readStored(config, context);
  return password !== '' && !former.some((record) => matches(password, record));
}

/** Of the stored password, if any. */
export function recordOfPassword(config: CertificateConfig, context: ClientContext): string | undefined {
  const password = readStored(config, context);
  return password === '' ? undefined : spentRecord(password, context.randomBytes(16));
}

export const isStored = ({ otp_file: file, otp_env: variable }: CertificateConfig): boolean =>
  file !== undefined || variable !== undefined;

/** @throws ClientError `CREDENTIALS_MISSING` */
function storedPassword(config: CertificateConfig, context: ClientContext): string {
  const password = readStored(config, context);
  if (password !== '') return password;
  const { otp_file: file, otp_env: variable } = config;
  const reason =
    file === undefined
      ? `the environment variable ${variable ?? ''} is not set`
      : `the file ${file} is missing or empty`;
  throw new ClientError('unauthenticated', 'CREDENTIALS_MISSING', `the server requires a password, and ${reason}`);
}

const readStored = (
  { otp_file: file, otp_env: variable = '' }: CertificateConfig,
  { disk, env }: Pick<ClientContext, 'disk' | 'env'>,
): string => (file === undefined ? env[variable] : disk.read(file)?.replace(/\r?\n$/, '')) ?? '';

const SCRYPT = { N: 4096, r: 8, p: 1 };
const LENGTH = 32;

/** Recognizes a password without revealing it. */
export const spentRecord = (password: string, salt: Buffer): string =>
  `${salt.toString('hex')} ${scryptSync(password, salt, LENGTH, SCRYPT).toString('hex')}`;

function matches(password: string, record: string): boolean {
  const [salt = '', hash = ''] = record.trim().split(' ');
  const expected = Buffer.from(hash, 'hex');
  if (expected.length !== LENGTH) return false;
  return timingSafeEqual(scryptSync(password, Buffer.from(salt, 'hex'), LENGTH, SCRYPT), expected);
}
