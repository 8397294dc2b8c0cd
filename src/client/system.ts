/**
 * What differs between operating systems. The tests run on Linux; the parts for macOS and Windows follow their
 * documentation and are not tested there.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { codeOf } from '../errors.ts';
import { PKCS11_ENGINES } from '../pki/pkcs11-engine.ts';
import { ClientError } from './client-error.ts';

export interface Lock {
  release(): void;
}

export interface System {
  /** One process per folder and purpose: a timer's step next to a daemon's would create two keys. @throws ClientError `FILES_UNUSABLE` if another process has it */
  lockFolder(folder: string, purpose?: string): Promise<Lock>;
  /** @throws ClientError `FILES_UNUSABLE` for an unknown user */
  userId(name: string): number;
  /** @throws ClientError `FILES_UNUSABLE` for an unknown group */
  groupId(name: string): number;
  /** Makes the entries of a folder durable. */
  syncFolder(folder: string): void;
  /** Links to a folder. */
  makeLink(target: string, path: string): void;
  /** A path as a word of a shell command line. */
  quote(path: string): string;
  /** Starts a shell command line, in a process group where there are any. */
  startShell(command: string, env: NodeJS.ProcessEnv): ChildProcess;
  /** Kills what {@link System.startShell} started, with its own child processes. */
  killAll(child: ChildProcess): void;
  /** Where distributions install libp11's engine. */
  readonly engines: readonly string[];
}

const unusable = (reason: string, cause?: unknown): ClientError =>
  new ClientError('local', 'FILES_UNUSABLE', reason, { cause });

const lockName = (folder: string, purpose: string): string =>
  `estuary-client-${purpose}-${createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 32)}`;

/** A lock that ends with its process: nobody else can listen at the address. */
function listenAt(address: string, folder: string): Promise<Lock> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const taken = codeOf(error) === 'EADDRINUSE';
      reject(unusable(`${folder}: ${taken ? 'another estuary client uses this folder' : error.message}`, error));
    });
    server.listen(address, () => {
      server.unref();
      resolve({ release: () => void server.close() });
    });
  });
}

/** Removes a socket that a killed process left. */
async function lockBySocket(folder: string, purpose = 'step'): Promise<Lock> {
  const path = join(folder, `.lock-${purpose}`);
  if (existsSync(path) && !(await answers(path))) rmSync(path, { force: true });
  return listenAt(path, folder);
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

function idIn(file: string, name: string): number {
  const entry = readFileSync(file, 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${name}:`));
  const id = entry?.split(':')[2];
  if (id === undefined) throw unusable(`"${name}" does not exist in ${file}`);
  return Number(id);
}

/** macOS and other Unix systems. */
export const POSIX: System = {
  lockFolder: lockBySocket,
  userId: (name) => idIn('/etc/passwd', name),
  groupId: (name) => idIn('/etc/group', name),
  syncFolder(folder) {
    const file = openSync(folder, 'r');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
  makeLink: symlinkSync,
  quote: (path) => `'${path.replaceAll("'", `'\\''`)}'`,
  startShell: (command, env) =>
    spawn('/bin/sh', ['-c', command], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true }),
  killAll({ pid }) {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  },
  engines: [],
};

export const LINUX: System = {
  ...POSIX,
  // In the abstract namespace, which leaves no file.
  lockFolder: (folder, purpose = 'step') => listenAt(`\0${lockName(folder, purpose)}`, folder),
  engines: PKCS11_ENGINES,
};

const noOwner = (name: string): never => {
  throw unusable(`owner and group ("${name}") have no effect on Windows. Set the permissions of the folder`);
};

export const WINDOWS: System = {
  lockFolder: (folder, purpose = 'step') => listenAt(`\\\\.\\pipe\\${lockName(folder, purpose)}`, folder),
  userId: noOwner,
  groupId: noOwner,
  syncFolder: () => undefined,
  makeLink: (target, path) => symlinkSync(target, path, 'junction'),
  quote: (path) => `"${path}"`,
  startShell: (command, env) => spawn(command, { env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] }),
  killAll: ({ pid }) => void spawn('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore' }),
  engines: [],
};

export const SYSTEM: System = process.platform === 'linux' ? LINUX : process.platform === 'win32' ? WINDOWS : POSIX;
