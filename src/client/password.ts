/** The password of a first enrolment: from a file, the environment, or whoever sits at the terminal. Read when a server asks. */
import { resolve } from 'node:path';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/client-config.ts';
import type { ClientContext } from './context.ts';

/** undefined: there is none to be had. */
export function passwordOf(config: CertificateConfig, context: ClientContext): (() => Promise<string>) | undefined {
  const { otp_file: file, otp_env: variable } = config;
  const { ask } = context;
  if (file !== undefined) return () => Promise.resolve(fromFile(file, context));
  if (variable !== undefined) return () => Promise.resolve(fromEnvironment(variable, context));
  if (ask === undefined) return undefined;
  return () => ask(`One-time password for ${config.name}: `, { secret: true });
}

function fromFile(file: string, { disk }: ClientContext): string {
  const text = disk.read(resolve(file))?.replace(/\r?\n$/, '') ?? '';
  if (text === '') throw missing(`the file ${file} is not there, or empty`);
  return text;
}

function fromEnvironment(variable: string, { env }: ClientContext): string {
  const text = env[variable] ?? '';
  if (text === '') throw missing(`the environment variable ${variable} is not set`);
  return text;
}

const missing = (reason: string): ClientError =>
  new ClientError('unauthenticated', 'CREDENTIALS_MISSING', `the server wants a password, and ${reason}`);
