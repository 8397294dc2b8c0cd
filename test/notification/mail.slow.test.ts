/** A digest by mail to a real mail server, Debian's OpenSMTPD. */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createReceiver } from '../../src/notification/receivers.ts';
import { runAny } from '../support/command.ts';
import { accepts, freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { until } from '../support/until.ts';

test.skipIf(!requires('opensmtpd', 'root'))('OpenSMTPD accepts a digest, and each recipient gets it', async () => {
  const folder = mkdtempSync('/tmp/estuary-mail-');
  chmodSync(folder, 0o755);
  const box = join(folder, 'box');
  mkdirSync(box);
  chownSync(box, Number((await runAny('id', ['-u', 'nobody'])).stdout), 0);
  const port = await freePort();
  writeFileSync(
    join(folder, 'smtpd.conf'),
    `table anybody { "@" = "nobody" }\nlisten on 127.0.0.1 port ${port}\n` +
      `action "keep" maildir "${box}" virtual <anybody>\nmatch from any for any action "keep"\n`,
  );
  const server = spawn(findCommand('smtpd') ?? 'smtpd', ['-d', '-f', join(folder, 'smtpd.conf')], { stdio: 'ignore' });
  onTestFinished(() => {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await until('the mail server', () => accepts(port));
  const to = ['a@example.com', 'b@example.com'];
  const mail = {
    kind: 'smtp',
    name: 'x',
    host: '127.0.0.1',
    port,
    security: 'none',
    from: 'e@example.com',
    to,
  } as const;
  const receiver = createReceiver({ ...mail, days: [30], retry_for: 10, digest_interval: 1 }, undefined);
  const event = { specversion: '1.0', source: 'urn:x', datacontenttype: 'application/json' } as const;
  const data = { ca: 'devices', detail: 'CRL 7 is late\r\nBcc: c@example.com' };
  await receiver.send([{ ...event, id: '1', type: 'crl.overdue', time: '2026-11-24T04:00:00Z', data }]);
  const fresh = join(box, 'new');
  const mails = await until('two mails', () => {
    const names = existsSync(fresh) ? readdirSync(fresh) : [];
    return names.length === 2 && names.map((name) => readFileSync(join(fresh, name), 'utf8'));
  });
  for (const text of mails) {
    expect(text).toMatch(/^Subject: Estuary: 1 warning\r?$/m);
    expect(text).toContain('  2026-11-24T04:00:00Z  devices: CRL 7 is late  Bcc: c@example.com');
    expect(text).not.toMatch(/^Bcc:/m);
  }
});
