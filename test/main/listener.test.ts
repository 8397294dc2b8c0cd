/** Issue 11.1: every socket that a listener opens is one whose connections it bounds and closes. */
import { isIP } from 'node:net';
import fastify from 'fastify';
import { expect, test } from 'vitest';
import { Listener } from '../../src/main/listener.ts';

test.each(['localhost', '127.0.0.1'])(
  'issue 11.1: host = "%s" is one address for Fastify, which makes servers without limits of the others of localhost',
  async (host) => {
    const app = fastify();
    const asked: string[] = [];
    const listen = async (at: { host: string; port: number }): Promise<void> => {
      asked.push(at.host);
      await app.listen(at);
    };
    const listener = new Listener(
      'admin',
      { host, port: 0 },
      { server: app.server, listen, close: () => app.close() },
      {
        limits: { total: 1, perAddress: 1 },
        log: { info: () => undefined, warn: () => undefined },
      },
    );
    await listener.listen();
    try {
      expect(asked.map(isIP)).not.toContain(0);
      expect(app.addresses()).toHaveLength(1);
    } finally {
      await listener.close(0);
    }
  },
);
