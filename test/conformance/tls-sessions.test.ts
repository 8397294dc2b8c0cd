/** A TLS session of one listener cannot be resumed at another. */
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { Estuary, type ClientIdentity } from '../support/estuary.ts';
import type { ListenerName } from '../support/server-process.ts';

type Version = 'TLSv1.2' | 'TLSv1.3';

describe('TLS sessions', () => {
  let estuary: Estuary;
  let device: ClientIdentity;

  beforeAll(async () => {
    estuary = await Estuary.start();
    device = await estuary.enrolled(makeKey());
  });
  afterAll(() => estuary.stop());

  /** One request on a connection; what it was told and whether the session was an old one. */
  function visit(
    listener: ListenerName,
    version: Version,
    session?: Buffer,
  ): Promise<{ reused: boolean; session: Buffer | undefined }> {
    return new Promise((resolve) => {
      let ticket: Buffer | undefined;
      let reused = false;
      const socket: TLSSocket = connect(
        {
          host: '127.0.0.1',
          port: estuary.server.port(listener),
          servername: 'localhost',
          ca: estuary.root,
          minVersion: version,
          maxVersion: version,
          ...device,
          ...(session === undefined ? {} : { session }),
        },
        () => {
          reused = socket.isSessionReused();
          socket.write('GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        },
      );
      socket.on('session', (given: Buffer) => (ticket = given));
      socket.on('error', () => undefined).resume();
      socket.on('close', () => resolve({ reused, session: ticket }));
    });
  }

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s: resume at the same listener only', async (version) => {
    const { session } = await visit('est', version);
    if (session === undefined) throw new Error('no session was offered');
    for (let i = 0; i < 2; i++) {
      expect((await visit('est', version, session)).reused, 'at the same listener').toBe(true);
      expect((await visit('admin', version, session)).reused, 'at the admin listener').toBe(false);
    }
  });
});
