/** Owner, group and modes of the files: numbers of the system from what the configuration calls them. */
import { readFileSync } from 'node:fs';
import type { CertificateConfig } from '../config/client-config.ts';
import { ClientError } from '../client-error.ts';
import type { FolderAccess } from './certificate-folder.ts';

/** @throws ClientError `FILES_UNUSABLE` for an owner or group that is not there */
export function accessOf({ owner, group, mode }: Pick<CertificateConfig, 'owner' | 'group' | 'mode'>): FolderAccess {
  const uid = owner === undefined ? undefined : idOf('/etc/passwd', owner);
  const gid = group === undefined ? undefined : idOf('/etc/group', group);
  const secret = Number.parseInt(mode, 8);
  return { folder: { mode: 0o755, uid, gid }, secret: { mode: secret, uid, gid }, open: { mode: 0o644, uid, gid } };
}

function idOf(file: string, name: string): number {
  if (/^\d+$/.test(name)) return Number(name);
  const entry = readFileSync(file, 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${name}:`));
  const id = entry?.split(':')[2];
  if (id === undefined) throw new ClientError('local', 'FILES_UNUSABLE', `there is no "${name}" in ${file}`);
  return Number(id);
}
