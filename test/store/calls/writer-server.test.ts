/** The process that writes for several, at its socket; test/faults kills it. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { serialize } from 'node:v8';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FrameReader, toFrame } from '../../../src/store/calls/frames.ts';
import { LEASE } from '../../../src/store/calls/revoked-serials.ts';
import type { Store } from '../../../src/store/store.ts';
import { auditTypes, event, issue, otpRow, reservation, T0, temporaryPaths } from '../support.ts';
import { startWriterHere, startWriterProcess } from '../writer.ts';

const revoke = (store: Store, serial: string): Promise<unknown> =>
  store.revokeCertificate({ ca: 'devices', serial, revoked_at: T0, reason: 'superseded', invalidity_date: null }, []);

/** A caller that does not keep to anything. */
async function stranger(path: string): Promise<{ socket: Socket; received: unknown[] }> {
  const socket = connect(path);
  onTestFinished(() => void socket.destroy());
  const frames = new FrameReader();
  const received: unknown[] = [];
  socket.on('data', (chunk: Buffer) => received.push(...[...frames.push(chunk)].map(({ message }) => message)));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return { socket, received };
}

/** Whatever it writes then fails. */
const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve));

describe('issue 14.3: one process writes for several', () => {
  test('what one has written, all read; one audit chain', async () => {
    const writer = await startWriterHere(temporaryPaths());
    const [one, other] = await Promise.all([writer.open('one'), writer.open('other')]);
    const rows = Array.from({ length: 40 }, () => otpRow());
    await Promise.all(rows.map((row, n) => (n % 2 === 0 ? one : other).insertOtp(row, [event('otp.created')])));
    for (const row of rows) {
      expect(await one.getOtp(row.id)).toEqual(row);
      expect(await other.getOtp(row.id)).toEqual(row);
    }
    expect(await auditTypes(one)).toHaveLength(40);
  });

  test('what one has revoked, all know before it is answered, without asking the database', async () => {
    const paths = temporaryPaths();
    const writer = await startWriterHere(paths);
    const [one, other] = await Promise.all([writer.open('one'), writer.open('other')]);
    for (let n = 10; n < 30; n++) {
      const serial = String(n);
      await issue(one, { ca: 'devices', serial });
      expect(await other.findRevoked(serial)).toEqual([]);
      await revoke(n % 2 === 0 ? one : other, serial);
      expect(await other.findRevoked(serial)).toHaveLength(1);
      expect(await one.findRevoked(serial)).toHaveLength(1);
    }
    const third = await writer.open('third');
    expect(await third.findRevoked('10')).toHaveLength(1);
  });

  test('one that cannot be told delays that answer until it goes by nothing that it knew; a dead one does not', async () => {
    const writer = await startWriterHere(temporaryPaths());
    const one = await writer.open('one');
    for (const serial of ['01', '02']) await issue(one, { ca: 'devices', serial });
    const { socket, received } = await stranger(writer.socket);
    socket.write(toFrame({ name: 'stopped' }));
    await expect.poll(() => received.length).toBeGreaterThan(0);
    const start = performance.now();
    await revoke(one, '01');
    expect(performance.now() - start).toBeGreaterThanOrEqual(LEASE);
    expect(received).toContainEqual({ revoked: ['01'], confirm: 1 });
    const second = revoke(one, '02');
    await expect.poll(() => received).toContainEqual({ revoked: ['02'], confirm: 2 });
    await writer.server.drop('stopped');
    await second;
  });

  test('calls that a dead process has left are not carried out once it was dropped, and it cannot come back', async () => {
    const writer = await startWriterHere(temporaryPaths());
    const supervisor = await writer.open('supervisor');
    const { socket, received } = await stranger(writer.socket);
    socket.write(toFrame({ name: 'dead' }));
    await expect.poll(() => received.length).toBeGreaterThan(0);
    const call = (id: number) => ({
      id,
      operation: 'reserve',
      args: [reservation({ instance: 'dead' }), []],
      time: T0,
    });
    socket.write(toFrame({ calls: [call(1)] }));
    await writer.server.drop('dead');
    await closed(socket);
    const again = await stranger(writer.socket);
    again.socket.write(Buffer.concat([toFrame({ name: 'dead' }), toFrame({ calls: [call(2)] })]));
    await closed(again.socket);
    expect(again.received).toEqual([]);
    expect(await supervisor.openReservations()).toEqual([]);
  });

  test.each<[string, Buffer]>([
    ['no name first', toFrame({ calls: [] })],
    ['no request', Buffer.concat([toFrame({ name: 'x' }), toFrame({ calls: [{ id: 'a' }] })])],
    ['no table', Buffer.concat([toFrame({ name: 'x' }), toFrame(null)])],
    ['a frame too long', Buffer.concat([toFrame({ name: 'x' }), Buffer.alloc(64, 0xff)])],
    ['no serialised value', Buffer.concat([Buffer.from([20, 0, 0, 0]), Buffer.alloc(20, 0x61)])],
    ['a value without the time', serialize({ name: 'x' })],
  ])('who says %s is cut off, and nobody else notices', async (_, octets) => {
    const writer = await startWriterHere(temporaryPaths());
    const store = await writer.open('one');
    const { socket } = await stranger(writer.socket);
    socket.write(octets);
    socket.end();
    await closed(socket);
    await store.audit([event('admin.access')]);
    expect(await auditTypes(store)).toEqual(['admin.access']);
  });

  test('an operation that there is not, or one without its arguments, fails alone', async () => {
    const writer = await startWriterHere(temporaryPaths());
    const store = await writer.open('one');
    const { socket, received } = await stranger(writer.socket);
    socket.write(toFrame({ name: 'x' }));
    const calls = ['toString', 'insertOtp', 'audit'].map((operation, id) => ({ id, operation, args: [[]], time: T0 }));
    socket.write(toFrame({ calls }));
    const failure = { status: 500, code: 'STORE_FAILED' };
    const replies = () => received.flatMap((message) => (message as { replies?: unknown[] }).replies ?? []);
    await expect.poll(replies).toHaveLength(3);
    expect(replies()).toMatchObject([{ id: 0, error: failure }, { id: 1, error: failure }, { id: 2 }]);
    expect(replies().at(2)).not.toHaveProperty('error');
    await store.audit([event('admin.access')]);
    expect(await auditTypes(store)).toEqual(['admin.access']);
  });

  test('the socket is for its owner alone, and goes with the writer', async () => {
    const paths = temporaryPaths();
    const writer = await startWriterProcess(paths);
    expect(statSync(`${paths.path}.writer`).mode & 0o777).toBe(0o700);
    const store = await writer.open('one');
    await store.audit([event('service.start')]);
    await store.close();
    await writer.keeper.stop();
    expect(statSync(`${paths.path}.writer`, { throwIfNoEntry: false })).toBeUndefined();
    await expect(writer.open('one')).rejects.toMatchObject({ status: 503, code: 'STORE_UNAVAILABLE' });
  });

  test('a process that cannot open the database tells everybody why, and does once it can', async () => {
    const paths = temporaryPaths();
    const writer = await startWriterHere({ ...paths, auditFile: '/proc/audit.log' });
    await expect(writer.open('one')).rejects.toMatchObject({ status: 503, code: 'AUDIT_UNAVAILABLE' });
    await delay(1);
    await expect(writer.open('other')).rejects.toMatchObject({ status: 503, code: 'AUDIT_UNAVAILABLE' });
  });
});
