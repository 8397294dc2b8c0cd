/** Clients that are slow, silent or rude, and a look at what a server still holds of them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { pause } from './until.ts';

/** A TCP connection that never closes its side, even after the server has. */
export function openTcp(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true }, () => {
      socket.off('error', reject).on('error', () => undefined);
      socket.resume();
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

/** So many of them, some at a time. */
export async function openMany(port: number, count: number, localAddress?: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const batch = Math.min(200, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: batch }, () => openTcp(port, localAddress)))));
  }
  return sockets;
}

/** Where a process keeps a socket open, listening ones and pipes to itself included. */
export function socketsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
    } catch {
      return false; // It was closed while we looked.
    }
  }).length;
}

/** Waits until a count has not changed for half a second. */
export async function settled(count: () => number): Promise<void> {
  for (let last = -1, same = 0; same < 5; last = count()) {
    same = count() === last ? same + 1 : 0;
    await pause(100);
  }
}

/** Resident memory of a process. */
export function rssMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
}
