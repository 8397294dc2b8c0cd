/** `server.reuse_port`: two nodes on one host share the port of the EST listener, and each has an admin listener. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { parse, stringify } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { runAny } from '../support/command.ts';
import { NODE, SERVER, startServer, type ServerProcess } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';

describe.skipIf(!requires('postgres'))('server.reuse_port', () => {
  let first: Estuary;
  let second: ServerProcess | undefined;
  const lookupKey = randomBytes(32);

  /** The configuration of another node on the same ports. */
  function otherNode(adminPort: number): string {
    const config = parse(readFileSync(join(first.dir, 'est.toml'), 'utf8'));
    section(config, 'store')['node_name'] = 'second';
    section(config, 'audit')['file'] = 'data/second.log';
    section(config, 'est')['port'] = first.server.port('est');
    section(config, 'admin')['port'] = adminPort;
    const file = join(first.dir, 'second.toml');
    writeFileSync(file, stringify(config));
    return file;
  }

  beforeAll(async () => {
    const url = await (await sharedPostgres()).createDatabase();
    const configure = (config: Parameters<typeof section>[0]): void => {
      section(config, 'server')['reuse_port'] = true;
    };
    first = await Estuary.start(withStoreIn({ configure }, url, 'first', lookupKey));
  });
  afterAll(async () => {
    await second?.stop();
    await first.stop();
  });

  const status = async (): Promise<number> => (await first.est('cacerts')).status;
  const servedBy = (server: ServerProcess): boolean =>
    server.log().some(({ listener, msg }) => listener === 'est' && msg === 'request');

  test('both nodes answer, and each goes on when the other stops', async () => {
    second = await startServer({ config: otherNode(0) });
    expect(second.port('est')).toBe(first.server.port('est'));
    const other = second;
    await expect.poll(async () => [await status(), servedBy(first.server), servedBy(other)]).toEqual([200, true, true]);
    await second.stop();
    for (let i = 0; i < 10; i++) expect(await status()).toBe(200);
  });

  test('a rolling restart under load loses no request, on new connections and on kept ones', async () => {
    second = await startServer({ config: otherNode(0) });
    const { token } = await first.otp({ max_uses: 100_000 });
    const body = onTheWire(simpleCsr(makeKey()));
    const answers: number[] = [];
    const lost: unknown[] = [];
    const kept = { connections: 0, answers: 0 };
    let over = false;
    const isOver = (): boolean => over;
    const client = async (keepAlive: boolean): Promise<void> => {
      while (!isOver()) {
        // The kernel resets connections that the stopping node has not accepted: these carry no request.
        const socket = await openTls(first.server.port('est'), { ca: first.root }).catch(() => undefined);
        if (socket === undefined) continue;
        const sockets = [socket];
        const createConnection = (_: unknown, created: (error: Error) => void): TLSSocket | undefined => {
          const unused = sockets.pop();
          if (unused === undefined) created(new Error('the kept connection has closed'));
          return unused;
        };
        const agent = Object.assign(new Agent({ keepAlive, maxSockets: 1 }), { createConnection });
        let answered = 0;
        try {
          do {
            answers.push((await first.enroll(body, { password: token, agent })).status);
            answered += 1;
          } while (keepAlive && !isOver() && !socket.destroyed);
        } catch (error) {
          // A kept connection may close while a request is on its way. A client then sends it once more, as curl does.
          if (answered === 0) lost.push(error);
        }
        if (keepAlive) [kept.connections, kept.answers] = [kept.connections + 1, kept.answers + answered];
        socket.destroy();
      }
    };
    const clients = [false, false, true, true].map(client);
    const goesOn = (): Promise<void> => {
      const before = answers.length;
      return vi.waitFor(() => expect(answers.length).toBeGreaterThan(before + 5), { timeout: 60_000 });
    };
    await goesOn();
    for (let round = 0; round < 2; round++) {
      await second.stop();
      await goesOn();
      second = await startServer({ config: otherNode(0) });
      await goesOn();
      const port = first.server.port('est');
      first.reconfigure((config) => void (section(config, 'est')['port'] = port));
      await first.server.stop();
      await goesOn();
      await first.restart();
      await goesOn();
    }
    over = true;
    await Promise.all(clients);
    expect(lost).toEqual([]);
    expect([...new Set(answers)]).toEqual([200]);
    expect(kept.answers).toBeGreaterThan(kept.connections);
    await second.stop();
  });

  test('an admin listener is not shared', async () => {
    const port = first.server.port('admin');
    const { code, output } = await runAny(NODE, [SERVER, '--config', otherNode(port)]);
    expect(output).toMatch(new RegExp(`the admin listener cannot listen on 127\\.0\\.0\\.1, port ${port} \\(`));
    expect(code).toBe(1);
    expect(await status()).toBe(200);
  });
});
