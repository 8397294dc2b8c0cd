/** Hooks: what runs when, with which environment, and what a hook cannot do to the client. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runHook } from '../../src/client/run-hook.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import {
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  subjectAltName,
  type Issuer,
} from '../support/certificates.ts';
import { csrOf, sendCertificates, sendStatus, startStandIn, type StandIn } from '../support/est-stand-in.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
let ca: Issuer;
let standIn: StandIn;
let status = 200;
let clients = 0;

beforeAll(async () => {
  ca = await makeCa('CN=EST CA');
  const server = await makeCertificate({
    subject: 'CN=server',
    issuer: ca,
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
  });
  writeFileSync(folder.file('ca.pem'), encodePem('CERTIFICATE', ca.der));
  standIn = await startStandIn(server, async (request) => {
    if (request.operation === 'cacerts') return sendCertificates(request, [ca.der]);
    if (!request.operation.startsWith('simple')) return sendStatus(request, 404);
    if (status !== 200) return sendStatus(request, status, { 'Retry-After': '30' });
    const { publicKey } = csrOf(request);
    const { der } = await makeCertificate({
      subject: 'CN=web',
      issuer: ca,
      keys: { publicKey: publicKey.keyObject, privateKey: ca.keys.privateKey },
      extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth)],
    });
    return sendCertificates(request, [der]);
  });
});
afterAll(async () => {
  await standIn.stop();
  folder.remove();
});

function client(certificate: Record<string, unknown>, document: Record<string, unknown> = {}): LocalClient {
  return localClient(folder.file(`client-${++clients}`), {
    server: { url: standIn.url, trust_anchors: folder.file('ca.pem') },
    certificate: { subject: 'CN=web', otp_env: 'OTP', ...certificate },
    env: { OTP: 'secret', PATH: process.env['PATH'] ?? '' },
    document,
  });
}

const lines = (file: string): string[] => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);

describe('the hooks of a certificate', () => {
  const all = (file: string): Record<string, string> => ({
    before: `echo before >> ${file}`,
    reload: `echo deploy >> ${file}`,
    after: `echo "after $ESTUARY_OUTCOME" >> ${file}`,
    failure: `echo "failure $ESTUARY_ERROR_CODE: $ESTUARY_ERROR" >> ${file}`,
  });

  test('run in this order: before, deploy, after; and none of them without an attempt', async () => {
    const file = folder.file('order');
    const one = client(all(file));
    await one.step();
    await one.step();
    expect(lines(file)).toEqual(['before', 'deploy', 'after changed']);
  });

  test('a failed attempt runs failure, with the reason, and then after', async () => {
    const file = folder.file('failed');
    status = 503;
    await client(all(file)).step();
    status = 202;
    await client(all(file)).step();
    status = 200;
    expect(lines(file)).toEqual([
      'before',
      'failure SERVER_UNAVAILABLE: simpleenroll: 503',
      'after failed',
      'before',
      'after pending',
    ]);
  });

  test('a failed before ends the attempt before anything is sent', async () => {
    const sent = standIn.requests.length;
    const one = client({ before: 'echo no; exit 3', failure: `echo failure >> ${folder.file('before')}` });
    const { outcome, error } = await one.step();
    expect([outcome, error?.code, error?.message]).toEqual([
      'failed',
      'HOOK_FAILED',
      '"echo no; exit 3" exited with 3: no',
    ]);
    expect([standIn.requests.length, lines(folder.file('before'))]).toEqual([sent, ['failure']]);
  });

  test('a failed deploy runs failure and is repeated; a failed after or failure is only logged', async () => {
    const file = folder.file('deploy');
    const one = client({ reload: `[ -e ${file} ]`, failure: 'exit 4', after: 'exit 5' });
    expect((await one.step()).error?.code).toBe('HOOK_FAILED');
    expect(one.log.join('\n')).toMatch(/error: failure: "exit 4" exited with 4\nerror: after: "exit 5" exited with 5/);
    writeFileSync(file, '');
    one.ahead = 60_000;
    expect((await one.step()).error).toBeUndefined();
  });

  test('see the certificate, and neither the password nor its variable', async () => {
    const file = folder.file('environment');
    const one = client({ reload: `env > ${file}` });
    await one.step();
    const seen = lines(file);
    for (const name of ['HOOK=deploy', 'CERTIFICATE=client-', 'FOLDER=', 'VERSION=1', 'SERIAL=', 'NOT_AFTER=20'])
      expect(seen.some((line) => line.startsWith(`ESTUARY_${name}`))).toBe(true);
    expect(seen.filter((line) => line.startsWith('OTP=') || line.includes('secret'))).toEqual([]);
  });

  test('their output is logged, line by line', async () => {
    const one = client({ reload: 'echo one; echo two >&2; printf "\\033[31mthree"' });
    await one.step();
    expect(one.log.filter((line) => line.startsWith('info: deploy: ')).sort()).toEqual([
      'info: deploy: [31mthree',
      'info: deploy: one',
      'info: deploy: two',
    ]);
  });
});

describe('the folder of hooks', () => {
  test('its programs run in the order of their names, before the own hook; a failed one does not stop the others', async () => {
    const [hooks, file] = [folder.file('hooks'), folder.file('programs')];
    mkdirSync(join(hooks, 'deploy'), { recursive: true });
    const program = (name: string, code: number, mode = 0o755): void => {
      writeFileSync(join(hooks, 'deploy', name), `#!/bin/sh\necho ${name} >> ${file}\nexit ${code}\n`);
      chmodSync(join(hooks, 'deploy', name), mode);
    };
    program('20-second', 1);
    program('10-first', 0);
    program('30-text', 0, 0o644);
    for (const name of ['.hidden', '40-backup~', '50-old.dpkg-dist', '60-other.bak']) program(name, 0);
    const one = client({ reload: `echo own >> ${file}` }, { hooks });
    expect((await one.step()).error?.message).toMatch(/20-second'" exited with 1$/);
    expect(lines(file)).toEqual(['10-first', '20-second', 'own']);
  });

  test('the default is the folder "hooks" next to client.toml', async () => {
    const one = client({});
    const place = join(one.folder, 'hooks/after');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'notify'), `#!/bin/sh\necho "$ESTUARY_OUTCOME" > ${folder.file('notified')}\n`, {
      mode: 0o755,
    });
    await one.step();
    expect(lines(folder.file('notified'))).toEqual(['changed']);
  });
});

describe('a hook', () => {
  const run = (command: string, timeout = 60_000, log: string[] = []): Promise<void> =>
    runHook(command, { PATH: process.env['PATH'] ?? '' }, timeout, (line) => void log.push(line));

  test('is killed after its timeout, with its child processes', async () => {
    const file = folder.file('child');
    const ending = run(`sleep 1000 & echo $! > ${file}; echo waiting; wait`, 15_000);
    await expect(ending).rejects.toThrow(/took longer than 15 s and was killed: waiting$/);
    const pid = Number(readFileSync(file, 'utf8'));
    await until('the child process is gone', () => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z');
      } catch {
        return true;
      }
    });
  });

  test('that leaves a process in the background does not keep the client waiting', async () => {
    const file = folder.file('background');
    await run(`sleep 1000 & echo $! > ${file}`);
    process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
  });

  test('logs at most 100 lines of 300 characters', async () => {
    const log: string[] = [];
    await run('yes "$(head -c 400 /dev/zero | tr "\\0" x)" | head -n 150', 60_000, log);
    expect([log.length, log[0]?.length, log.at(-1)]).toEqual([101, 300, '… and 50 more lines']);
  });

  test('that is killed is a failure', async () => {
    await expect(run('kill -9 $$')).rejects.toThrow('was killed by SIGKILL');
  });
});
