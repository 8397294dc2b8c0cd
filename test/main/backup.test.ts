import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import Database from 'better-sqlite3';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAudit } from '../../src/store/sqlite/read-audit.ts';
import { backUp, openBackup } from '../../src/main/backup/backup.ts';
import { restore, type Restored } from '../../src/main/backup/restore.ts';
import { hmacKeyFile } from '../../src/store/lookup-key-file.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import { chain, parseLine } from '../../src/audit/record.ts';
import { crlIssued, requestEnded, tokenEvent } from '../../src/audit/applied-events.ts';
import type { Store } from '../../src/store/store.ts';
import {
  certificateRow,
  event,
  issue,
  otpRow,
  type Paths,
  requestRow,
  reservation,
  T0,
  temporaryPaths,
} from '../store/support.ts';
import { requires } from '../support/requires.ts';

const HOUR = 3_600_000;

interface Case {
  readonly paths: Paths;
  readonly backup: string;
  /** Tokens of two uses each that the backup has. */
  readonly tokens: readonly { readonly id: string }[];
}

async function withStore(paths: Paths, work: (store: Store) => Promise<unknown>): Promise<void> {
  const store = await openStore({ ...paths, now: () => T0 + HOUR });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

const used = (id: string) => tokenEvent({ type: 'otp.used', token: { id } }, {});

/** A store with two tokens, a backup of it, and then what `since` does. */
async function backedUp(since: (store: Store, made: Case) => Promise<unknown>, before = since): Promise<Case> {
  const paths = temporaryPaths();
  const tokens = [otpRow({ max_uses: 2 }), otpRow({ max_uses: 2 })];
  const backup = join(paths.folder, 'backup');
  const made = { paths, backup, tokens };
  await withStore(paths, async (store) => {
    for (const row of tokens) await store.insertOtp(row, [tokenEvent({ type: 'otp.created', token: row }, {})]);
    if (before !== since) await before(store, made);
    backUp({
      storePath: paths.path,
      otp: {},
      to: backup,
      now: () => T0,
      progress: () => undefined,
    });
    await since(store, made);
  });
  return made;
}

type Bar = ReturnType<Parameters<typeof restore>[0]['bar']>;
const noBar = (): Bar => ({ update: () => undefined, end: () => undefined });

async function restoreTo({ paths, backup }: Case, bar: (what: string) => Bar = noBar): Promise<Restored> {
  const open = openBackup(backup);
  return restore({
    backup: open,
    storePath: paths.path,
    auditFile: paths.auditFile,
    archive: join(paths.folder, 'archive'),
    otp: {},
    node: 'node',
    cas: ['devices'],
    now: T0 + HOUR,
    progress: () => undefined,
    watch: () => () => undefined,
    bar,
  }).finally(() => open.close());
}

const verify = ({ paths }: Case) => verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });

async function tokensOf({ paths, tokens }: Case): Promise<unknown[]> {
  let found: unknown[] = [];
  await withStore(paths, async (store) => {
    const rows = await Promise.all(tokens.map(({ id }) => store.getOtp(id)));
    found = rows.map((row) => (row?.revoked_at === null ? row.uses : 'revoked'));
  });
  return found;
}

const useBoth = async (store: Store, { tokens: [a, b] }: Case): Promise<void> => {
  await store.audit([used(a?.id ?? '')]);
  await store.audit([used(b?.id ?? ''), used(b?.id ?? '')]);
};

describe('the replay of audit records since the backup', () => {
  test('is applied, and the chain goes on through the restore', async () => {
    const made = await backedUp(useBoth);
    expect(await restoreTo(made)).toMatchObject({ whole: true, revokedTokens: 0 });
    expect(await verify(made)).toMatchObject({ ok: true, ahead: 0 });
    expect(await tokensOf(made)).toEqual([1, 2]);
    // A second time from the same backup: what the first restore wrote is there too.
    expect(await restoreTo(made)).toMatchObject({ whole: true });
    expect(await tokensOf(made)).toEqual([1, 2]);
    expect(await verify(made)).toMatchObject({ ok: true, ahead: 0 });
  });

  test('tells how far it is, record by record', async () => {
    const made = await backedUp(useBoth);
    const told = new Map<string, unknown>();
    await restoreTo(made, (what) => ({
      update: (records, of) => void told.set(what, [records, of]),
      end: () => void told.set(`${what}: end`, true),
    }));
    expect([...told]).toEqual([
      ['reading the audit log', [expect.any(Number), undefined]],
      ['reading the audit log: end', true],
      ['applying the audit log', [3, 3]],
      ['applying the audit log: end', true],
    ]);
  });

  test.each<[string, (path: string) => void]>([
    ['a file next to it', (path) => renameSync(path, `${path}.1`)],
    [
      'a compressed file next to it',
      (path) => {
        writeFileSync(`${path}-20260101.gz`, gzipSync(readFileSync(path)));
        rmSync(path);
      },
    ],
  ])('is found where the log was rotated into %s', async (_name, rotate) => {
    const made = await backedUp(async (store, one) => {
      await useBoth(store, one);
      rotate(one.paths.auditFile);
      await store.audit([event('admin.access')]);
    });
    expect(await restoreTo(made)).toMatchObject({ whole: true, revokedTokens: 0 });
    expect(await tokensOf(made)).toEqual([1, 2]);
    expect(await verify(made)).toMatchObject({ ok: true, ahead: 0 });
  });

  test.each<[string, (path: string) => void]>([
    ['is missing', (path) => rmSync(path)],
    ['is empty', (path) => writeFileSync(path, '')],
    ['is older than the backup', (path) => writeFileSync(path, `${readFileSync(path, 'utf8').split('\n')[0]}\n`)],
  ])('is unknown where the file %s: unused tokens are revoked, and a new file begins', async (_name, change) => {
    const made = await backedUp(useBoth);
    change(made.paths.auditFile);
    expect(await restoreTo(made)).toMatchObject({ whole: false, revokedTokens: 2 });
    expect(await tokensOf(made)).toEqual(['revoked', 'revoked']);
    expect(await verify(made)).toMatchObject({ ok: true, ahead: 0 });
    expect(readFileSync(made.paths.auditFile, 'utf8')).toContain('"otp.revoked"');
  });

  test('is known in part where files between are missing: that part is applied, and unused tokens are revoked', async () => {
    const made = await backedUp(async (store, one) => {
      await store.audit([event('admin.access')]);
      rmSync(one.paths.auditFile);
      await useBoth(store, one);
    });
    const { whole, revokedTokens, moved } = await restoreTo(made);
    expect({ whole, revokedTokens }).toEqual({ whole: false, revokedTokens: 1 });
    expect(moved.some((path) => path.startsWith(made.paths.auditFile))).toBe(true);
    expect(await tokensOf(made)).toEqual(['revoked', 2]);
    expect(await verify(made)).toMatchObject({ ok: true, ahead: 0 });
  });

  test('of a single-use JWT that was first presented since: it stays used', async () => {
    const id = `jwt:${'ab'.repeat(32)}`;
    const made = await backedUp(async (store) => {
      const row = otpRow({ id, lookup: id, hash: '', client_id: 'device-7', max_uses: 1 });
      expect(await store.admitToken(row)).toEqual(row);
      expect(await store.reserve(reservation({ otp_id: id }), [used(id)])).toBe('reserved');
    });
    expect(await restoreTo(made)).toMatchObject({ whole: true });
    await withStore(made.paths, async (store) => {
      const again = otpRow({ id, lookup: id, hash: '', client_id: 'device-7', max_uses: 1 });
      expect(await store.admitToken(again)).toMatchObject({ uses: 1, max_uses: 1 });
      expect(await store.reserve(reservation({ otp_id: id }), [used(id)])).toBe('otp-unusable');
    });
  });

  test('of an issuance that was under way: its token stays used when the certificate came, and is given back when none did', async () => {
    const open: string[] = [];
    const made = await backedUp(
      async (store, { tokens }) => {
        const [issued, failed] = open;
        const ca = 'devices';
        await store.audit([event('certificate.issued', { request_id: issued ?? '', ca, serial: '0a' })]);
        await store.audit([
          tokenEvent({ type: 'otp.returned', token: { id: tokens[1]?.id ?? '' } }, { request_id: failed ?? '' }),
        ]);
      },
      async (store, one) => {
        for (const { id } of one.tokens) {
          const intent = reservation({ otp_id: id });
          open.push(intent.request_id);
          await store.reserve(intent, [used(id)]);
        }
      },
    );
    await restoreTo(made);
    await withStore(made.paths, async (store) => expect(await store.openReservations()).toEqual([]));
    expect(await tokensOf(made)).toEqual([1, 0]);
  });

  test('of a certificate also the label that it was asked for at, issued or revoked since', async () => {
    const certificate = { ca: 'devices', label: 'guests' };
    const made = await backedUp(async (store) => {
      await store.audit([event('certificate.issued', { ...certificate, serial: '0c' })]);
      await store.audit([
        event('certificate.revoked', { ...certificate, serial: '0d', revocation_reason: 'superseded' }),
      ]);
    });
    await restoreTo(made);
    await withStore(made.paths, async (store) => {
      for (const serial of ['0c', '0d']) expect(await store.getCertificates(serial)).toMatchObject([certificate]);
    });
  });

  test('of a token also that its end was changed', async () => {
    const made = await backedUp((store, { tokens: [token] }) =>
      store.audit([tokenEvent({ type: 'otp.changed', token: { id: token?.id ?? '', expires_at: T0 + 2 * HOUR } }, {})]),
    );
    await restoreTo(made);
    await withStore(made.paths, async (store) => {
      expect(await store.getOtp(made.tokens[0]?.id ?? '')).toMatchObject({ expires_at: T0 + 2 * HOUR });
    });
  });

  test('of a certificate that was issued or taken in: taking it in again completes the record and leaves its revocation, authorized names, and pass', async () => {
    const certificate = { ca: 'devices', certificate_subject: 'CN=a', certificate_sans: ['DNS:a'] };
    const made = await backedUp(async (store) => {
      const details = { ...certificate, subject: 'somebody', request_id: 'r' };
      const authorized_names = JSON.stringify(['MAA=', null, null]);
      await store.audit([event('certificate.issued', { ...details, serial: '0e', authorized_names })]);
      await store.audit([event('certificate.imported', { ...details, serial: '0f' })]);
      const rescue_until = new Date(T0 + 9).toISOString();
      await store.audit([event('certificate.rescued', { ...certificate, serial: '0f', rescue_until })]);
      await store.audit([
        event('certificate.revoked', { ...certificate, serial: '0e', revocation_reason: 'superseded' }),
      ]);
    });
    await restoreTo(made);
    await withStore(made.paths, async (store) => {
      for (const serial of ['0e', '0f']) {
        const [restored] = await store.getCertificates(serial, 'devices');
        expect(restored).toMatchObject({ requester: 'somebody', subject: 'CN=a', der: Buffer.alloc(0) });
        const whole = certificateRow(reservation({ ca: 'devices', serial }), { subject: 'CN=a' });
        expect(await store.importCertificate(whole, [])).toBe('imported');
        const [complete] = await store.getCertificates(serial, 'devices');
        const { der, fingerprint_sha256 } = whole;
        const reason = serial === '0e' ? 'superseded' : null;
        expect(complete).toMatchObject({ requester: 'somebody', der, fingerprint_sha256, reason });
        expect(await store.importCertificate(whole, [])).toBe('known');
        expect(await store.getAuthorizedNames(serial, 'devices')).toBe(
          serial === '0e' ? '["MAA=",null,null]' : undefined,
        );
        expect(await store.findRescues(serial, T0)).toHaveLength(serial === '0e' ? 0 : 1);
      }
    });
  });

  test('of passes for one more renewal: a used one is used, an ended one is gone', async () => {
    const of = (serial: string) => ({ ca: 'devices', serial });
    const made = await backedUp(async (store) => {
      for (const serial of ['01', '02', '03'])
        await store.audit([
          event('certificate.rescued', { ...of(serial), rescue_until: new Date(T0 + 9).toISOString() }),
        ]);
      await store.audit([event('certificate.rescue_ended', { ...of('02'), request_id: 'r' })]);
      await store.audit([event('certificate.rescue_ended', { ...of('03'), operation: 'DELETE /admin/…' })]);
    });
    await restoreTo(made);
    await withStore(made.paths, async (store) => {
      const passes = (serial: string) => store.findRescues(serial, T0);
      expect(await passes('01')).toMatchObject([{ ...of('01'), request_id: null }]);
      expect(await passes('02')).toMatchObject([{ ...of('02'), request_id: 'r' }]);
      expect(await passes('03')).toEqual([]);
    });
  });

  test('of queued requests: what was issued is not issued again, what was rejected stays rejected', async () => {
    const [issued, rejected] = [requestRow(), requestRow()];
    const made = await backedUp(
      async (store) => {
        await store.audit([event('certificate.issued', { request_id: issued.id, ca: 'devices', serial: '0b' })]);
        await store.audit([requestEnded('request.rejected', { request_id: rejected.id }, 'no', 'by somebody: no')]);
      },
      async (store) => {
        for (const row of [issued, rejected]) await store.queueRequest(row, null, []);
      },
    );
    await restoreTo(made);
    await withStore(made.paths, async (store) => {
      expect(await store.getRequest(issued.id)).toMatchObject({ status: 'failed' });
      expect(await store.getRequest(rejected.id)).toMatchObject({ status: 'rejected', reason: 'no' });
    });
  });

  test('CRL numbers go on behind every number that was given out', async () => {
    const made = await backedUp((store) => store.audit([crlIssued('devices', 41, 300)]));
    await restoreTo(made);
    await withStore(made.paths, async (store) => expect(await store.takeCrlNumber('devices')).toBe(42));
    rmSync(made.paths.auditFile);
    await restoreTo(made);
    await withStore(made.paths, async (store) => expect(await store.takeCrlNumber('devices')).toBeGreaterThan(42));
  });
});

describe('a restore that is refused changes nothing', () => {
  const folderOf = ({ folder }: Paths): Record<string, string> =>
    Object.fromEntries(
      readdirSync(folder)
        .filter((name) => name !== 'backup' && !name.includes('restoring'))
        .map((name) => [name, readFileSync(join(folder, name), 'latin1')]),
    );

  test.each<[string, string, (made: Case) => void]>([
    ['a damaged database', 'BACKUP_DAMAGED', ({ backup }) => appendFileSync(join(backup, 'est.db'), 'x')],
    [
      'a database that was damaged before its digest was noted',
      'BACKUP_DAMAGED',
      ({ backup }) => {
        const [file, list] = [join(backup, 'est.db'), join(backup, 'backup.json')];
        const [content, manifest] = [readFileSync(file), readFileSync(list, 'utf8')];
        const digest = hash('sha256', content);
        // Overwrites a whole page of a table or index: the last one.
        content.fill(0xff, content.length - 4096);
        writeFileSync(file, content);
        writeFileSync(list, manifest.replace(digest, hash('sha256', content)));
      },
    ],
    ['an unfinished backup', 'BACKUP_DAMAGED', ({ backup }) => rmSync(join(backup, 'backup.json'))],
    [
      'a manifest of something else',
      'BACKUP_DAMAGED',
      ({ backup }) => writeFileSync(join(backup, 'backup.json'), '{}'),
    ],
    [
      'an audit file of a version before 0.2',
      'AUDIT_TOO_OLD',
      ({ paths: { auditFile } }) => {
        // Its records do not contain the last record that the store had.
        const head = parseLine(readFileSync(auditFile, 'utf8').split('\n')[1] ?? '');
        if (head === undefined) throw new Error('no second record');
        writeFileSync(auditFile, `${chain(head, event('service.start'), T0).line}\n`);
      },
    ],
    [
      'an audit file that was changed',
      'AUDIT_TAMPERED',
      ({ paths: { auditFile } }) =>
        writeFileSync(auditFile, readFileSync(auditFile, 'utf8').replace('otp.used', 'otp.uses')),
    ],
  ])('%s', async (_name, code, change) => {
    const made = await backedUp(useBoth);
    change(made);
    const before = folderOf(made.paths);
    await expect(restoreTo(made)).rejects.toThrow(expect.objectContaining({ code }));
    expect(folderOf(made.paths)).toEqual(before);
  });

  test('the audit file of another store', async () => {
    const [made, other] = [await backedUp(useBoth), await backedUp(useBoth)];
    cpSync(other.paths.auditFile, made.paths.auditFile);
    await expect(restoreTo(made)).rejects.toThrow(expect.objectContaining({ code: 'AUDIT_TAMPERED' }));
  });
});

test('a backup has the key of sha256-hmac that the server created, and a restore puts it back', async () => {
  const key = Buffer.alloc(32, 7);
  const fileOf = ({ paths }: Case): string => hmacKeyFile(paths.path);
  const made = await backedUp(
    () => Promise.resolve(),
    (_, to) => {
      writeFileSync(fileOf(to), key, { mode: 0o600 });
      return Promise.resolve();
    },
  );
  rmSync(fileOf(made));
  await restoreTo(made);
  expect(readFileSync(fileOf(made))).toEqual(key);
  expect(statSync(fileOf(made)).mode & 0o777).toBe(0o600);
});

test.skipIf(!requires('root'))('a backup that does not fit names the file that it cannot write', async () => {
  const paths = temporaryPaths();
  await withStore(paths, (store) => issue(store));
  const to = join(paths.folder, 'small');
  mkdirSync(to);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', to]);
  onTestFinished(() => void execFileSync('umount', [to]));
  const options = { storePath: paths.path, otp: {}, to, now: () => T0 };
  expect(() => backUp({ ...options, progress: () => undefined })).toThrow(
    `cannot write ${join(to, 'est.db')}: database or disk is full`,
  );
});

test('a backup is one moment of the store, while others write', async () => {
  const paths = temporaryPaths();
  const backup = join(paths.folder, 'backup');
  const told: string[] = [];
  await withStore(paths, async (store) => {
    const writing = Promise.all(Array.from({ length: 50 }, () => issue(store)));
    const progress = (text: string) => void told.push(text);
    backUp({ storePath: paths.path, otp: {}, to: backup, now: () => T0, progress });
    await writing;
  });
  // The tables are in the write-ahead log yet: what is said is not the size of an empty database.
  expect(Number(/\((\d+) bytes\)/.exec(told[0] ?? '')?.[1])).toBeGreaterThan(100_000);
  expect(existsSync(join(backup, 'otp-lookup.key'))).toBe(true);
  const db = new Database(join(backup, 'est.db'), { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  db.close();
});
