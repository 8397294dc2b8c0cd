/** A start while the database does not answer: the server waits, alive and not ready. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { freePorts } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, untilLogged } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

describe.skipIf(!requires('postgres'))('a database that does not answer at the start', () => {
  let estuary: Estuary;
  let relay: TcpRelay;
  let url: string;
  const key = makeKey();
  const programs = temporaryFolder();
  const enroll = async () => {
    const { token } = await estuary.otp();
    return (await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { password: token })).status;
  };

  beforeAll(async () => {
    const cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    relay = await TcpRelay.start(cluster.port);
    const [est, admin] = await freePorts(2);
    const configure = (config: Record<string, unknown>): void => {
      Object.assign(config['est'] ?? {}, { port: est });
      Object.assign(config['admin'] ?? {}, { port: admin });
    };
    const through = url.replace(/:\d+\//, `:${relay.port}/`);
    const notify = programs.file('systemd-notify');
    writeFileSync(notify, `#!/bin/sh\necho "$@" >> ${programs.file('notified')}\n`, { mode: 0o755 });
    const env = { NOTIFY_SOCKET: '/nowhere', PATH: `${programs.path}:${process.env['PATH'] ?? ''}` };
    estuary = await Estuary.start({ ...withStoreIn({ configure, env }, through, 'one'), built: true });
    expect(await enroll()).toBe(200);
    await estuary.server.stop();
    await relay.die();
    await estuary.restart();
  });
  afterAll(async () => {
    await estuary.stop();
    await relay.die();
    programs.remove();
  });

  test('the listeners answer: alive, not ready, and 503 with Retry-After', async () => {
    expect(await estuary.admin('GET', '/healthz')).toEqual({ status: 200, json: { status: 'ok' } });
    expect(await estuary.admin('GET', '/readyz')).toMatchObject({ status: 503, json: { message: 'not ready: store' } });
    const { status, headers } = await estuary.est('cacerts');
    expect([status, Number(headers['retry-after']) > 0]).toEqual([503, true]);
    await untilLogged(estuary.server, { msg: 'the server waits for its database, which does not answer' });
    await until('the time limit of the unit is extended', () =>
      Promise.resolve(readFileSync(programs.file('notified'), 'utf8').includes('EXTEND_TIMEOUT_USEC=')),
    );
    const doctor = await runAny(NODE, [SERVER, 'doctor', '--config', join(estuary.dir, 'est.toml')]);
    expect(doctor).toMatchObject({ code: 1, output: expect.stringMatching(/^failed +store: /m) as string });
  });

  test('a stop during the wait is clean', async () => {
    expect(await estuary.server.stop()).toEqual({ code: 0, signal: null });
    await estuary.restart();
  });

  test('the server works once the database answers', async () => {
    await relay.revive();
    const ready = () =>
      estuary.admin('GET', '/readyz').then(
        ({ status }) => status === 200,
        // The ports change hands.
        () => false,
      );
    await until('the node is ready', ready);
    expect(await enroll()).toBe(200);
  });

  test('a refused login, and a database that does not exist, are exit code 1', async () => {
    await estuary.server.stop();
    for (const wrong of [url.replace(/\/\/[^@/]*@/, '//nobody-here@'), url.replace(/\/[^/]*$/, '/nowhere')]) {
      writeFileSync(join(estuary.dir, 'store.url'), wrong);
      const { code, output } = await runAny(NODE, [SERVER, '--config', join(estuary.dir, 'est.toml')]);
      expect([code, output]).toEqual([1, expect.stringContaining('could not start') as string]);
    }
  });
});
