/** Commands that root runs write as the user who owns the store's folder, so that the service can use the files. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, statSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { failed } from '../../errors.ts';
import { nearestFolder, renameCopy } from '../../folders.ts';

/**
 * Started as root, becomes the owner of the store's folder, and replaces files of other users that the service could not
 * open. Nothing outside the folder changes. Open what only root may read before.
 * @throws EstuaryError 500 `STORE_IN_USE`
 */
export function becomeOwner(storePath: string, auditFile: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(nearestFolder(dirname(storePath)));
  if (uid === 0) return;
  const audit = openForeign(auditFile, uid);
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
  for (const path of [storePath, auditFile]) for (const end of ['.lock', '.owner']) removeForeign(`${path}${end}`, uid);
  if (audit === undefined) return;
  renameCopy(audit, auditFile);
  closeSync(audit);
}

const isForeign = ({ uid }: { readonly uid: number }, owner: number): boolean => uid !== owner;

/** Only a regular file with one name, so that no link leads elsewhere. */
function openForeign(path: string, owner: number): number | undefined {
  const named = lstatSync(path, { throwIfNoEntry: false });
  if (named?.isFile() !== true || !isForeign(named, owner)) return undefined;
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { nlink, uid } = fstatSync(fd);
  if (nlink === 1 && uid === named.uid) return fd;
  closeSync(fd);
  return undefined;
}

/** A lock that nobody holds, or a link. */
function removeForeign(path: string, owner: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.isFile() && !isForeign(found, owner))) return;
  if (found.isFile() && readFileSync('/proc/locks', 'utf8').includes(`:${found.ino} `))
    throw failed('STORE_IN_USE', 'the store is in use by another service', { detail: `a process has locked ${path}` });
  unlinkSync(path);
}
