import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cefLine } from '../../../src/audit/cef.ts';
import type { AuditRecord } from '../../../src/audit/event.ts';
import { parseLine } from '../../../src/audit/record.ts';
import { parseCsv } from '../../../src/http/admin/bulk/csv.ts';
import { run } from '../../../src/main/commands/audit-export.ts';
import type { CommandContext } from '../../../src/main/commands/command.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { toml } from '../../config/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { textOf } from '../../support/command.ts';

const T = Date.UTC(2026, 0, 1);
const iso = (ms: number): string => new Date(ms).toISOString();

describe('estuary audit export', () => {
  const folder = temporaryFolder();
  let config: string;

  beforeAll(async () => {
    config = folder.file('est.toml');
    writeFileSync(config, toml());
    let now = T;
    const store = await openStore({
      node: 'node-1',
      path: folder.file('data/est.db'),
      auditFile: folder.file('data/audit.log'),
      now: () => now,
    });
    for (const subject of ['CN=a|b', '=cmd()', 'CN=c']) {
      await store.audit([
        { type: 'auth.otp', outcome: 'failure', subject, address: '2001:db8::1', request_id: 'r', detail: 'a=b\\c' },
      ]);
      now += 1000;
    }
    await store.close();
  });
  afterAll(() => folder.remove());

  const exported = async (more: { format?: string; since?: string; until?: string }): Promise<string> => {
    let out = '';
    const context: CommandContext = {
      env: {},
      out: (text) => void (out += textOf(text)),
      err: () => undefined,
      now: () => T,
      signals: { pass: () => undefined, release: () => undefined },
    };
    expect(await run({ config, format: undefined, since: undefined, until: undefined, ...more }, context)).toBe(0);
    return out;
  };

  test('json: the records as they were hashed, within a range of time', async () => {
    const lines = (await exported({})).trimEnd().split('\n');
    expect(lines.map((line) => parseLine(line)?.seq)).toEqual([1, 2, 3]);
    const range = await exported({ format: 'json', since: iso(T + 1000), until: iso(T + 1999) });
    expect(range).toBe(`${lines[1]}\n`);
  });

  test('csv: a header and a line each, and no formula', async () => {
    const [header, ...rows] = [...parseCsv(await exported({ format: 'csv' }))].map(({ fields }) => fields);
    expect(header?.slice(0, 6)).toEqual(['seq', 'time', 'node', 'type', 'outcome', 'subject']);
    expect(rows.map((row) => row[5])).toEqual(['CN=a|b', `'=cmd()`, 'CN=c']);
  });

  test('cef: header and extension, escaped', async () => {
    const [first = ''] = (await exported({ format: 'cef' })).split('\n');
    expect(first).toMatch(
      /^CEF:0\|Estuary\|Estuary\|[^|]+\|auth\.otp\|auth otp failure\|6\|rt=1767225600000 externalId=1 /,
    );
    expect(first).toContain(' suser=CN\\=a|b ');
    expect(first).toContain(' c6a2=2001:db8::1 c6a2Label=Source IPv6 Address ');
    expect(first).toContain(' cs3Label=requestId cs3=r ');
    expect(first.endsWith(' msg=a\\=b\\\\c')).toBe(true);
    const record: AuditRecord = {
      seq: 1,
      time: iso(T),
      type: 'otp.created',
      outcome: 'success',
      address: '192.0.2.1',
      detail: 'two\nlines',
      prev_hash: '',
      hash: 'h',
    };
    expect(cefLine(record, '1|2')).toBe(
      'CEF:0|Estuary|Estuary|1\\|2|otp.created|otp created success|3|rt=1767225600000 externalId=1 outcome=success src=192.0.2.1 cs6Label=recordHash cs6=h msg=two\\nlines',
    );
  });

  test.each([{ format: 'xml' }, { since: 'yesterday' }, { until: '2026-01-01' }])('%j is refused', async (more) => {
    await expect(exported(more)).rejects.toThrow(/^--(format|since|until) must/);
  });
});
