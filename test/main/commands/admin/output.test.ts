/** The tables of the list commands on a narrow terminal, with values as long as real ones. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonRecord } from '../../../../src/main/commands/admin/json.ts';
import { ADMIN_COMMANDS } from '../../../../src/main/commands/admin/table.ts';
import { OID } from '../../../../src/pki/der/oids.ts';
import { encodePem } from '../../../../src/pki/der/pem.ts';
import { dns, extKeyUsage, makeCa, makeClient, subjectAltName } from '../../../support/certificates.ts';
import { startStandIn, type StandIn } from '../../../support/est-stand-in.ts';
import { temporaryFolder } from '../../../support/openssl.ts';
import { estuary } from '../../../support/local-command.ts';

const TIME = '2026-11-27T22:49:08.000Z';
const ID = '0193747e-6f3c-7c2f-8d64-0d1f6f1c9a55';
const SERIAL = '5f0c6e9d1b7a4c2f8e3d6a9b0c1d2e3f';
const SUBJECT = 'CN=press-line-17.plant-3.example.com,OU=Production,O=Example Manufacturing GmbH,C=DE';
const SANS = ['DNS:press-line-17.plant-3.example.com', 'IP:192.0.2.17'];
const REQUESTER = 'gssapi:host/press-line-17.plant-3.example.com@EXAMPLE.COM';

/** By the name of the command: a record, and what tells it from others. */
const LISTS: readonly [name: string, record: JsonRecord, identifying: readonly string[]][] = [
  [
    'cert list',
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
    'request list',
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
    'otp list',
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
    'device list',
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
    'ca list',
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
    'lockout list',
    { key: 'ip:2001:db8:85a3:8d3:1319:8a2e:370:7348', scope: 'address', failures: 10, locked_until: TIME },
    ['ip:2001:db8:85a3:8d3:1319:8a2e:370:7348'],
  ],
  [
    'notification list',
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
    'renewal list',
    { id: ID, starts_at: TIME, by: TIME, reason: 'the module was recalled '.repeat(5), created_by: REQUESTER },
    [ID],
  ],
  [
    'audit list',
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
  [
    'fleet list',
    {
      state: 'failing',
      since: TIME,
      ca: 'production',
      subject: SUBJECT,
      device: 'press-line-17.plant-3.example.com',
      not_after: TIME,
      last_used_at: TIME,
      last_code: 'REENROLL_SUBJECT_MISMATCH',
      window_end: TIME,
    },
    [SUBJECT],
  ],
];

describe('a list command', () => {
  const folder = temporaryFolder();
  let server: StandIn;
  let env: Record<string, string>;
  let items: readonly JsonRecord[];
  beforeAll(async () => {
    const ca = await makeCa('CN=Test CA');
    const extensions = [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))];
    const certificate = await makeClient('CN=localhost', ca, { extensions });
    server = await startStandIn(certificate, ({ response }) =>
      response.end(JSON.stringify({ items, next_cursor: null })),
    );
    writeFileSync(folder.file('ca.pem'), encodePem('CERTIFICATE', ca.der));
    env = {
      NO_COLOR: '1',
      ESTUARY_ADMIN_URL: server.url,
      ESTUARY_ADMIN_TOKEN: 'any',
      ESTUARY_ADMIN_CA: folder.file('ca.pem'),
    };
  });
  afterAll(async () => {
    await server.stop();
    folder.remove();
  });

  /** @param outColumns undefined: into a pipe */
  async function printed(name: string, record: JsonRecord, outColumns?: number, ...options: string[]): Promise<string> {
    items = [record, record];
    const { code, out, err } = await estuary(['admin', ...name.split(' '), ...options], {
      env,
      ...(outColumns === undefined ? {} : { terminal: { outColumns } }),
    });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return out;
  }

  it('has a record here', () => {
    const names = ADMIN_COMMANDS.flatMap((entry) => (entry.kind === 'command' ? [entry.name] : []));
    expect(LISTS.map(([name]) => name).toSorted()).toEqual(names.filter((name) => / list$/.test(name)).toSorted());
  });

  it.each(LISTS)(
    '%s: at 80 columns no line is longer, and no identifying value is cut',
    async (name, record, identifying) => {
      const lines = (await printed(name, record, 80)).trimEnd().split('\n');
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
      const words = lines.slice(1).join(' ').split(/\s+/);
      for (const value of identifying)
        for (const part of value.split(/(?<=,)|\s+/))
          expect(
            words.some((word) => word.includes(part.trim())),
            part,
          ).toBe(true);
    },
  );

  it('shows all columns with their full values with --wide, and into a pipe', async () => {
    const [[name, record] = ['', {}]] = LISTS;
    const full = await printed(name, record);
    expect(full).toContain(`${SUBJECT}  ${SANS.join(' ')}  ${REQUESTER}`);
    expect(await printed(name, record, 80, '--wide')).toBe(full);
  });
});
