/** The tables of the list commands on a narrow terminal, with values as long as real ones. */
import { describe, expect, it } from 'vitest';
import type { JsonRecord } from '../../../../src/main/commands/admin/json.ts';
import {
  AUDIT,
  CAS,
  CERTIFICATES,
  DEVICES,
  type Kind,
  LOCKOUTS,
  OTPS,
  RECEIVERS,
  RENEWALS,
  REQUESTS,
  tableOf,
} from '../../../../src/main/commands/admin/output.ts';
import { type Around } from './support.ts';

const TIME = '2026-11-27T22:49:08.000Z';
const ID = '0193747e-6f3c-7c2f-8d64-0d1f6f1c9a55';
const SERIAL = '5f0c6e9d1b7a4c2f8e3d6a9b0c1d2e3f';
const SUBJECT = 'CN=press-line-17.plant-3.example.com,OU=Production,O=Example Manufacturing GmbH,C=DE';
const SANS = ['DNS:press-line-17.plant-3.example.com', 'IP:192.0.2.17'];
const REQUESTER = 'gssapi:host/press-line-17.plant-3.example.com@EXAMPLE.COM';

const TABLES: readonly [name: string, kind: Kind, record: JsonRecord, identifying: readonly string[]][] = [
  [
    'certificates',
    CERTIFICATES,
    {
      serial: SERIAL,
      ca: 'production',
      status: 'valid',
      not_after: TIME,
      subject: SUBJECT,
      sans: SANS,
      requester: REQUESTER,
    },
    [SERIAL, SUBJECT],
  ],
  [
    'requests',
    REQUESTS,
    {
      id: ID,
      ca: 'production',
      status: 'pending',
      created_at: TIME,
      subject: SUBJECT,
      sans: SANS,
      key_type: 'ec-p256',
    },
    [ID, SUBJECT],
  ],
  [
    'one-time passwords',
    OTPS,
    {
      id: ID,
      client_id: 'press-line-17.plant-3.example.com',
      ca: 'production',
      status: 'active',
      uses: 0,
      max_uses: 10,
    },
    [ID, 'press-line-17.plant-3.example.com'],
  ],
  [
    'devices',
    DEVICES,
    {
      id: 'press-line-17.plant-3.example.com',
      ca: 'production',
      enabled: true,
      not_after: TIME,
      note: 'x'.repeat(200),
    },
    ['press-line-17.plant-3.example.com'],
  ],
  [
    'CAs',
    CAS,
    {
      label: 'production',
      default: true,
      driver: 'pkcs11',
      health: 'ok',
      days_left: 3650,
      not_after: TIME,
      subject: SUBJECT,
    },
    ['production'],
  ],
  [
    'lockouts',
    LOCKOUTS,
    { key: 'ip:2001:db8:85a3:8d3:1319:8a2e:370:7348', scope: 'address', failures: 10, locked_until: TIME },
    ['ip:2001:db8:85a3:8d3:1319:8a2e:370:7348'],
  ],
  [
    'receivers',
    RECEIVERS,
    {
      name: 'operations',
      kind: 'webhook',
      state: 'failing',
      failures: 17,
      behind: 1234,
      destination: `https://hooks.example.com/${'x'.repeat(80)}`,
    },
    ['operations'],
  ],
  [
    'campaigns',
    RENEWALS,
    { id: ID, starts_at: TIME, by: TIME, reason: 'the module was recalled '.repeat(5), created_by: REQUESTER },
    [ID],
  ],
  [
    'audit records',
    AUDIT,
    {
      seq: 12_345_678,
      time: TIME,
      type: 'enrollment.succeeded',
      outcome: 'success',
      subject: SUBJECT,
      ca: 'production',
      detail: 'x '.repeat(100),
    },
    ['12345678', 'enrollment.succeeded'],
  ],
];

const printed = (kind: Kind, record: JsonRecord, { terminal }: Around, wide = false): string =>
  tableOf(
    kind,
    [record, record],
    {
      env: { NO_COLOR: '1' },
      out: () => undefined,
      err: () => undefined,
      now: () => 0,
      signals: { pass: () => undefined, release: () => undefined },
      terminal: { outColumns: undefined, errColumns: undefined, ask: undefined, ...terminal },
    },
    wide,
  );

describe('a table at 80 columns', () => {
  it.each(TABLES)('%s: no line is longer, and no identifying value is cut', (_, kind, record, identifying) => {
    const lines = printed(kind, record, { terminal: { outColumns: 80 } })
      .trimEnd()
      .split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const words = lines.slice(1).join(' ').split(/\s+/);
    for (const value of identifying)
      for (const part of value.split(/(?<=,)|\s+/))
        expect(
          words.some((word) => word.includes(part.trim())),
          part,
        ).toBe(true);
  });

  it('--wide, and a pipe, show all columns with their full values', () => {
    const [, kind, record] = TABLES[0] ?? [];
    if (kind === undefined || record === undefined) throw new TypeError('no table');
    const full = printed(kind, record, {});
    expect(full).toContain(`${SUBJECT}  ${SANS.join(' ')}  ${REQUESTER}`);
    expect(printed(kind, record, { terminal: { outColumns: 80 } }, true)).toBe(full);
  });
});
