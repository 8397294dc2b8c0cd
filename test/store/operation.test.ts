/** What the store knows about each operation, and that the calls are made of it. */
import { afterAll, describe, expect, test } from 'vitest';
import { WriteQueue } from '../../src/store/calls/write-queue.ts';
import { callsOf, EVERYTHING, quickRead, slowRead, type WriteOperation } from '../../src/store/operation.ts';
import { result } from '../../src/store/port.ts';
import { AuditLog } from '../../src/store/sqlite/audit-log.ts';
import { openWritable } from '../../src/store/sqlite/database.ts';
import { AuditLog as NodeAuditLog } from '../../src/store/postgres/audit-log.ts';
import * as postgres from '../../src/store/postgres/operations.ts';
import { Queries } from '../../src/store/postgres/queries.ts';
import { readOperations, writeOperations } from '../../src/store/sqlite/operations.ts';
import { certificateRow, deviceRow, otpRow, requestRow, reservation, T0 } from './rows.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
const db = openWritable(folder.file('est.db'));
afterAll(() => {
  db.close();
  folder.remove();
});

const tables = () => ({
  reads: readOperations(db),
  writes: writeOperations(db, new AuditLog(db, folder.file('audit.log'))),
});

/** Those of PostgreSQL; they have no connection. */
function tablesOfNode() {
  const queries = new Queries({ query: () => Promise.reject(new Error('not connected')) });
  const log = new NodeAuditLog(queries, folder.file('audit.log'), 'node-1');
  return {
    reads: postgres.readOperations(queries, 'node-1'),
    writes: postgres.writeOperations(queries, log, 'node-1'),
  };
}

const named = (table: object, kind: string): readonly string[] =>
  Object.entries(table).flatMap(([name, operation]: [string, { readonly kind: string }]) =>
    operation.kind === kind ? [name] : [],
  );

describe('a call of the store is what its table has an operation for', () => {
  test('by its name, with its arguments, and no other', async () => {
    const received: unknown[] = [];
    const table = { find: quickRead((id: string) => result(id)), list: slowRead(() => result('all')) };
    const calls = callsOf(table, (operation, name) => (...args) => {
      received.push([operation, name, args]);
      return Promise.resolve('found');
    });
    expect(Object.keys(calls)).toEqual(['find', 'list']);
    expect(await calls.find('a')).toBe('found');
    expect(received).toEqual([[table.find, 'find', ['a']]]);
  });
});

test.each(['SQLite', 'PostgreSQL'])('%s has reads and writes, each of a kind of its table', (driver) => {
  const { reads, writes } = driver === 'SQLite' ? tables() : tablesOfNode();
  const kinds = (table: Readonly<Record<string, { readonly kind: string }>>) =>
    [...new Set(Object.values(table).map(({ kind }) => kind))].sort();
  expect([kinds(reads), kinds(writes)]).toEqual([
    ['quick', 'slow'],
    ['begins', 'completes', 'free'],
  ]);
});

test('lists, exports, counts of whole tables and maintenance do not run in the main thread', () => {
  expect([...named(tables().reads, 'slow')].sort()).toEqual([
    ...['auditEvents', 'auditLines', 'checkpoint', 'countCertificatesByEnd', 'countEnteredHolders'],
    ...[
      'countEvents',
      'countExpiringHolders',
      'countOfOtherCas',
      'countRejections',
      'countWaiting',
      'deviceHistory',
      'findOverTokens',
    ],
    ...['indexForSearch', 'lastArchived', 'listAudit', 'listCertificates', 'listDeviceAttributes'],
    ...['listDevices', 'listEnteredHolders', 'listGivenChains', 'listHeldCertificates', 'listHolders'],
    ...['listLockouts', 'listOtps', 'listRequests', 'listSuccessions', 'revokedEntries', 'usesOfDevices'],
  ]);
});

test('what the drivers write themselves is of the same kind in both', () => {
  const [here, there] = [tables(), tablesOfNode()];
  for (const name of ['reads', 'writes'] as const) {
    const kinds = new Map<string, string>(Object.entries(here[name]).map(([call, { kind }]) => [call, kind]));
    const others = Object.entries(there[name]).filter(([call]) => call !== 'indexForSearch');
    for (const [call, { kind }] of others) expect([call, kind]).toEqual([call, kinds.get(call)]);
    expect(others.length).toBeGreaterThan(name === 'reads' ? 30 : 40);
  }
  expect(there.writes.indexForSearch).toMatchObject({ kind: 'free', keys: EVERYTHING });
});

describe('a node that the others may consider dead', () => {
  const committed: string[] = [];
  const calls = (isHeld: () => boolean) => {
    const { writes } = tables();
    const names = new Map<WriteOperation, string>(Object.entries(writes).map(([name, operation]) => [operation, name]));
    const writer = {
      carryOut: (group: readonly { readonly operation: WriteOperation }[]) => {
        committed.push(...group.map(({ operation }) => names.get(operation) ?? ''));
        return Promise.resolve(group.map(() => ({ value: undefined })));
      },
    };
    const queue = new WriteQueue(writer, { isHeld });
    return callsOf(writes as Readonly<Record<string, WriteOperation>>, (operation) => queue.callOf(operation));
  };

  test('begins nothing that they would close, and does all else', async () => {
    const refused: string[] = [];
    committed.length = 0;
    for (const [name, call] of Object.entries(calls(() => false)))
      await call().catch((error: unknown) => {
        expect(error).toMatchObject({ status: 503, code: 'NODE_LEASE_LOST' });
        refused.push(name);
      });
    expect(refused.sort()).toEqual(['checkWritable', 'claimCmcMessage', 'claimRequest', 'reserve', 'submitRequest']);
    expect(committed).toContain('recordCertificate');
    expect(committed.filter((name) => refused.includes(name))).toEqual([]);
    expect(committed.length + refused.length).toBe(Object.keys(tables().writes).length);
  });

  test('a node with its lease does all of it', async () => {
    committed.length = 0;
    const all = calls(() => true);
    for (const call of Object.values(all)) await call();
    expect(committed).toEqual(Object.keys(all));
  });

  test('learns from the record of a certificate alone that they closed its work', () => {
    expect(named(tables().writes, 'completes')).toEqual(['recordCertificate']);
  });
});

describe('what two writes could conflict on, they name', () => {
  const intent = reservation({ request_id: 'r', otp_id: 't', device_key: 'k', ca: 'c', serial: '01' });
  const row = requestRow({ id: 'r', recognition: 'h', otp_id: 't', device_key: 'k' });
  const rescued = { ...intent, rescued: { ca: 'c', serial: '02', recognition: 'h' } };
  const issued = ['request r', 'device of key k', 'serial 01 c'];
  const queued = ['request r', 'recognition h', 'token t', 'device of key k'];
  const ending = ['request r', 'concerning request r'];
  const devices = ['a', 'b'].map((id) => ({ row: deviceRow({ id }), events: [] }));
  const path = { leaf: 'l', intermediates: ['a', 'b'].map((fingerprint) => ({ fingerprint, der: Buffer.of() })) };
  const session = { id_hash: 's', administrator: 'a' };
  const passwords = ['password x', 'password y'];
  type Expected = readonly [args: readonly unknown[], keys: readonly string[]];

  const EXPECTED: Readonly<Record<string, readonly Expected[]>> = {
    insertOtp: [[[otpRow({ id: 't' })], ['token t']]],
    admitToken: [[[otpRow({ id: 't' })], ['token t']]],
    changeOtp: [[['t'], ['token t']]],
    revokeOtp: [[['t'], ['token t']]],
    recordFailure: [[[['x', 'y']], passwords]],
    deleteLockout: [[['x'], ['password x']]],
    reserve: [
      [[intent], [...issued, 'token t']],
      [[{ ...intent, otp_id: null, device_key: null, serial: null }], ['request r']],
    ],
    claimRequest: [
      [[intent], issued],
      [[rescued], [...issued, 'serial 02 c']],
    ],
    recordCertificate: [[[certificateRow(intent, { device_key: 'k' }), []], issued]],
    releaseReservation: [[['r'], ending]],
    importCertificate: [[[certificateRow(intent, { device_key: 'k' })], ['serial 01 c']]],
    revokeCertificate: [[[intent], ['serial 01 c', 'list c']]],
    releaseCertificate: [[[intent], ['serial 01 c', 'list c']]],
    queueRequest: [
      [[row, null, []], queued],
      [
        [row, null, [], intent],
        [...queued, 'serial 01 c'],
      ],
    ],
    rescueCertificate: [[[intent], ['serial 01 c']]],
    endRescue: [[[intent], ['serial 01 c']]],
    decideRequest: [[[{ id: 'r' }], ending]],
    failRequest: [[['r'], ending]],
    submitRequest: [
      [[row], queued],
      [
        [row, null, rescued],
        [...queued, 'serial 02 c'],
      ],
    ],
    awaitCa: [[['r', '1', []], ['request r']]],
    withdrawRequest: [[['r'], ending]],
    takePoll: [[['r'], ['request r']]],
    noteWaiting: [[['r'], ['request r']]],
    putAcmeAccount: [[[{ directory: 'd', thumbprint: 'p' }], ['account p d']]],
    endRequest: [[['r'], ending]],
    claimCmcMessage: [[[{ key: 'm' }], ['message m']]],
    concludeCmcMessage: [[['m'], ['message m']]],
    takeCrlNumber: [[['c'], ['list c']]],
    saveCrl: [[[{ ca: 'c' }], ['list c']]],
    putDevices: [[[devices], ['device a', 'device b']]],
    changeDevice: [[[{ id: 'a' }], ['device a']]],
    deleteDevice: [[['k'], ['device of key k']]],
    rememberIntermediates: [[[path], ['path l', 'intermediate a', 'intermediate b']]],
    createSession: [
      [
        [session, 'o'],
        ['session s', 'administrator a', 'session o'],
      ],
      [
        [session, null],
        ['session s', 'administrator a'],
      ],
    ],
    touchSession: [[['s'], ['session s']]],
    deleteSession: [[['s'], ['session s']]],
    beginNotification: [[['n'], ['notification n']]],
    advanceNotification: [[['n'], ['notification n']]],
    startRenewal: [[[{ id: 'i' }], ['renewal i']]],
    endRenewal: [[['i'], ['renewal i']]],
    noteOverdue: [[['i', T0], ['renewal i']]],
    recordUses: [[[{}], ['fleet']]],
    ...Object.fromEntries(
      ['applyFleetChanges', 'setFleetProgress', 'walkFleet', 'deriveDueHolders', 'reportHolders'].map((name) => [
        name,
        [[[], ['fleet']]] as const,
      ]),
    ),
    audit: [[[[]], []]],
    auditDevice: [[['k', []], []]],
    reopenAuditFile: [[[], []]],
    noteArchived: [[[{}, ''], []]],
    addRejections: [[[0, []], []]],
    checkWritable: [[[T0], ['probe']]],
    // What they affect is not in their arguments.
    expireRequests: [],
    purgeArchived: [],
    purgeCertificates: [],
    purgeCmcMessages: [],
    purgeDevices: [],
    purgeTokens: [],
    releaseCmcMessages: [],
    anchorAudit: [],
  };

  test('every write of the store is here', () => {
    expect(Object.keys(tables().writes).sort()).toEqual(Object.keys(EXPECTED).sort());
  });

  // One test for all: scripts/mutate runs each test for each fact.
  test('of its arguments, at both drivers', () => {
    const drivers: readonly Readonly<Record<string, WriteOperation>>[] = [tables().writes, tablesOfNode().writes];
    for (const writes of drivers)
      for (const [name, expected] of Object.entries(EXPECTED)) {
        const keys = writes[name]?.keys;
        if (expected.length === 0) expect(keys, name).toBe(EVERYTHING);
        else if (typeof keys !== 'function') expect.fail(`${name} has the transaction to itself`);
        else for (const [args, names] of expected) expect(keys(...(args as never[])), name).toEqual(names);
      }
  });
});
