/** Traffic of strangers. Their addresses differ, so that a lockout or a limit affects only its cause. */
import { randomBytes, randomInt } from 'node:crypto';
import { Agent } from 'node:https';
import type { Socket } from 'node:net';
import { makeKey, onTheWire, simpleCsr } from '../csr.ts';
import type { Answer } from '../https.ts';
import { beSlow, SLOW_KINDS } from '../slow-crowd.ts';
import { token } from './devices.ts';
import type { Activity } from './load.ts';

/** Slow clients at a time. */
const SLOW = 60;
const [GUESSER, SLOW_ADDRESS, STRANGER] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];

export const guessing: Activity = {
  name: 'wrong password',
  clients: 1,
  pause: 100,
  begin(load) {
    const csr = onTheWire(simpleCsr(makeKey()));
    const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: GUESSER });
    return {
      async round() {
        const password = randomBytes(15).toString('base64url');
        await load.ask('wrong password', [401], () => load.estuary.enroll(csr, { password, agent }));
      },
      end: () => agent.destroy(),
    };
  },
};

export const garbage: Activity = {
  name: 'garbage',
  clients: 1,
  pause: 50,
  begin(load) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: STRANGER });
    // Failures come from an address that is already locked out, so that the others are rejected for their own reason.
    const failing = new Agent({ keepAlive: true, maxSockets: 1, localAddress: GUESSER });
    const good = simpleCsr(makeKey());
    let password: string | undefined;
    const flipped = (): Buffer => {
      const copy = Buffer.from(good);
      const at = randomInt(copy.length);
      copy[at] = (copy[at] ?? 0) ^ (1 << randomInt(8));
      return copy;
    };
    const type = (name: string) => ({ headers: { 'Content-Type': name } });
    const KINDS: readonly (readonly [number, () => Promise<Answer>])[] = [
      [400, () => load.estuary.enroll(randomBytes(300).toString('base64'), { password: password ?? '', agent })],
      [400, () => load.estuary.enroll(randomBytes(300), { password: password ?? '', agent })],
      [400, () => load.estuary.enroll(onTheWire(flipped()), { password: password ?? '', agent })],
      [400, () => load.estuary.enroll('', { password: password ?? '', agent })],
      [415, () => load.estuary.enroll(onTheWire(good), { ...type('text/plain'), password: password ?? '', agent })],
      [404, () => load.estuary.enroll(onTheWire(good), { path: `${randomInt(1e9)}/simpleenroll`, agent })],
      [405, () => load.estuary.est('simpleenroll', { method: 'DELETE', agent })],
      [401, () => load.estuary.enroll(onTheWire(good), { headers: { Authorization: 'Basic !!!' }, agent: failing })],
    ];
    let rounds = 0;
    return {
      async round() {
        password ??= await token(load, { client_id: 'garbage', max_uses: 100_000 });
        if (password === undefined) return;
        const [status, send] = KINDS[rounds++ % KINDS.length] ?? [0, () => Promise.reject(new Error('no kind'))];
        await load.ask('garbage', [status], send);
      },
      end: () => {
        agent.destroy();
        failing.destroy();
      },
    };
  },
};

export const dawdling: Activity = {
  name: 'slow clients',
  clients: 1,
  pause: 500,
  begin(load) {
    let sockets: Socket[] = [];
    return {
      async round() {
        for (const listener of ['est', 'admin', 'publication'] as const) {
          const kind = SLOW_KINDS[randomInt(SLOW_KINDS.length)] ?? 'slow TLS';
          const port = load.estuary.server.port(listener);
          const socket = await beSlow(kind, { listener, port, ca: load.estuary.root, localAddress: SLOW_ADDRESS });
          sockets.push(socket);
        }
        for (const socket of sockets.slice(0, -SLOW)) socket.destroy();
        sockets = sockets.slice(-SLOW);
      },
      end: () => sockets.forEach((socket) => socket.destroy()),
    };
  },
};
