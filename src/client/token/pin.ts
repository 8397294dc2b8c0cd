/** A token's PIN, read when it is used. */
import { ClientError } from '../client-error.ts';
import type { TokenConfig } from '../config/client-config.ts';
import type { Disk } from '../keep/disk.ts';

export interface PinSources {
  readonly disk: Pick<Disk, 'read'>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** @throws ClientError `KEY_UNUSABLE` */
export function tokenPin({ label, pin_file: file, pin_env: variable }: TokenConfig, { disk, env }: PinSources): string {
  const given = file === undefined ? env[variable ?? ''] : disk.read(file)?.replace(/\r?\n$/, '');
  if (given !== undefined && given !== '') return given;
  const where = file === undefined ? `the environment variable ${variable ?? ''}` : `the file ${file}`;
  throw new ClientError('local', 'KEY_UNUSABLE', `the PIN of the token "${label}": ${where} is empty, or not there`);
}
