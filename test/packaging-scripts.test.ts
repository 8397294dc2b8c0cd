/** The maintainer scripts of the Debian package, with stand-ins for the programs that they call. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from './support/openssl.ts';
import { ROOT } from './support/root.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(folder.file('bin'));
  mkdirSync(folder.file('run/systemd/system'), { recursive: true });
  standIn('getent', 'exit 0');
  standIn('install', 'exit 0');
});
afterEach(() => folder.remove());

/** A program that notes how it was called. */
function standIn(name: string, does: string, path = join('bin', name)): void {
  mkdirSync(join(folder.file(path), '..'), { recursive: true });
  writeFileSync(folder.file(path), `#!/bin/sh\necho "${name} $*" >> ${folder.file('calls')}\n${does}\n`);
  chmodSync(folder.file(path), 0o755);
}

/** systemctl with three units, of which the second cannot be restarted or stopped. */
const systemctl = (daemonReload = 'exit 0'): void =>
  standIn(
    'systemctl',
    `case "$1" in
daemon-reload) ${daemonReload} ;;
list-units) printf '%s loaded active running Estuary\\n' estuary.service estuary@a.service estuary@b.service ;;
esac
case "$*" in *'estuary@a.service') exit 1 ;; esac`,
  );

/** Runs a script in a root folder that is not the machine's. */
function run(script: string, action: string) {
  const text = readFileSync(join(ROOT, 'config/debian', script), 'utf8');
  const moved = text.replaceAll(/(?<![\w.])\/(run|usr\/sbin|etc|var\/lib)\//g, `${folder.path}/$1/`);
  const env = { PATH: `${folder.file('bin')}:/usr/bin:/bin` };
  const { status, stderr } = spawnSync('/bin/sh', ['-s', action], { input: moved, env, encoding: 'utf8' });
  const calls = existsSync(folder.file('calls')) ? readFileSync(folder.file('calls'), 'utf8').split('\n') : [];
  return { status, stderr, calls };
}

test('an upgrade restarts every instance, goes on when one fails, names it, and leaves the package configured', () => {
  systemctl('exit 1');
  const { status, stderr, calls } = run('postinst', 'configure');
  expect(calls.filter((call) => call.startsWith('systemctl restart'))).toEqual([
    'systemctl restart estuary.service',
    'systemctl restart estuary@a.service',
    'systemctl restart estuary@b.service',
  ]);
  expect(calls.find((call) => call.startsWith('systemctl list-units'))).toContain(
    '--state=active,activating,reloading',
  );
  expect(stderr).toContain('estuary@a.service did not restart');
  expect(stderr).not.toContain('estuary@b.service');
  expect(status).toBe(0);
});

test.each([
  [101, false],
  [104, true],
  [0, true],
])('policy-rc.d counts: with %i, restarts happen: %s', (code, happens) => {
  systemctl();
  standIn('policy-rc.d', `exit ${code}`, 'usr/sbin/policy-rc.d');
  const { status, stderr, calls } = run('postinst', 'configure');
  expect(calls).toContain('policy-rc.d estuary@b.service restart');
  expect(calls.includes('systemctl restart estuary@b.service')).toBe(happens);
  expect(stderr.includes('policy-rc.d forbids the restart of estuary@b.service')).toBe(!happens);
  expect(status).toBe(0);
});

test('a removal stops every instance, also after one that does not stop', () => {
  systemctl();
  const { status, stderr, calls } = run('prerm', 'remove');
  expect(calls).toContain('systemctl disable --now estuary@b.service');
  expect(stderr).toContain('estuary@a.service did not stop');
  expect(status).toBe(0);
});

test.each([
  ['client/postinst', 'configure', ['enable', 'daemon-reload', 'start', 'try-restart']],
  ['client/prerm', 'remove', ['disable', 'stop']],
  ['client/postrm', 'remove', ['daemon-reload']],
  ['postrm', 'purge', ['daemon-reload']],
])('%s goes on when systemctl fails, and says so', (script, action, verbs) => {
  standIn('systemctl', 'exit 1');
  const { status, stderr, calls } = run(script, action);
  for (const verb of verbs) expect(calls.filter((call) => call.startsWith(`systemctl ${verb}`))).not.toEqual([]);
  expect(stderr).toMatch(/^estuary/m);
  expect(status).toBe(0);
});

test('policy-rc.d counts for the units of the client', () => {
  systemctl();
  standIn('policy-rc.d', 'exit 101', 'usr/sbin/policy-rc.d');
  const { status, stderr, calls } = run('client/postinst', 'configure');
  expect(calls.filter((call) => /^systemctl (?:start|try-restart)/.test(call))).toEqual([]);
  expect(stderr).toContain('policy-rc.d forbids the start of estuary-client-renew.timer');
  expect(status).toBe(0);
});
