/** A SoftHSM2 of the test's own: its configuration, its tokens, its keys. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { runText } from './command.ts';
import { temporaryFolder } from './openssl.ts';

export const SOFTHSM_MODULE = '/usr/lib/softhsm/libsofthsm2.so';
export const PIN = 'user-pin-4711';
export const SO_PIN = '87654321';

/** Key types by what pkcs11-tool calls them. */
export const TOKEN_KEYS = {
  'ec:P-256': 'EC:prime256v1',
  'ec:P-384': 'EC:secp384r1',
  'rsa:2048': 'rsa:2048',
  'rsa:3072': 'rsa:3072',
} as const;
export type TokenKeyType = keyof typeof TOKEN_KEYS;

export interface SoftHsm {
  /** Environment that leads the module to this HSM. */
  readonly env: { readonly SOFTHSM2_CONF: string };
  /** A path in the HSM's own temporary folder. */
  file(name: string): string;
  addToken(label: string): void;
  /** Puts a private key in PEM (PKCS #8) into a token. */
  importKey(token: string, file: string, label: string, id: string): void;
  /** Generates a key pair with pkcs11-tool. */
  addKey(token: string, type: TokenKeyType, label: string, id: string): Promise<void>;
  /** Runs pkcs11-tool, logged in. */
  tool(token: string, ...args: string[]): Promise<string>;
  /** Takes all tokens away, as when a cable is pulled, and puts them back. */
  moveAway(): void;
  moveBack(): void;
  remove(): void;
}

/** @param within an existing folder to live in, which somebody else removes; a temporary one unless given */
export function softHsm(within?: string): SoftHsm {
  const folder = within === undefined ? temporaryFolder() : folderIn(within);
  const tokens = folder.file('tokens');
  const away = folder.file('tokens-away');
  mkdirSync(tokens);
  const SOFTHSM2_CONF = join(folder.path, 'softhsm2.conf');
  writeFileSync(SOFTHSM2_CONF, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  const env = { SOFTHSM2_CONF };
  const util = (...args: string[]): void => {
    execFileSync('softhsm2-util', args, { env: { ...process.env, ...env }, timeout: 60_000, stdio: 'pipe' });
  };
  const tool = (token: string, ...args: string[]): Promise<string> =>
    runText('pkcs11-tool', ['--module', SOFTHSM_MODULE, '--token-label', token, '--login', '--pin', PIN, ...args], {
      env,
    });
  return {
    env,
    file: folder.file,
    addToken: (label) => util('--init-token', '--free', '--label', label, '--pin', PIN, '--so-pin', SO_PIN),
    importKey: (token, file, label, id) =>
      util('--import', file, '--token', token, '--label', label, '--id', id, '--pin', PIN),
    async addKey(token, type, label, id) {
      await tool(token, '--keypairgen', '--key-type', TOKEN_KEYS[type], '--label', label, '--id', id);
    },
    tool,
    moveAway: () => renameSync(tokens, away),
    moveBack: () => renameSync(away, tokens),
    remove: folder.remove,
  };
}

function folderIn(parent: string): Pick<ReturnType<typeof temporaryFolder>, 'path' | 'file' | 'remove'> {
  const path = join(parent, 'softhsm');
  mkdirSync(path);
  return { path, file: (name) => join(path, name), remove: () => undefined };
}
