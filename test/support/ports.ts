import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** How many ports each worker of the tests chooses from, so that no two choose the same one. */
const SHARE = 3_000;
/** Below those that Linux gives to connections and to port 0, which would take a port before its program listens. */
const FIRST = 20_000 + SHARE * (Number(process.env['VITEST_POOL_ID'] ?? 0) % 4);
const END = FIRST + SHARE;

/** An unused loopback port, for a program that cannot say which one port 0 gave it. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('no port');
  return port;
}

/** As many different ones: all were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/** Whether somebody listens on a loopback port, or on a socket in the file system. */
export function accepts(at: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(typeof at === 'number' ? { port: at, host: '127.0.0.1' } : { path: at }, () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });
}
