/** Sends requests at a rate of its own, whatever comes back: a process that overload.ts starts with a Storm, and that answers with what it saw. */
import { readFileSync } from 'node:fs';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { CACERTS_REQUEST, enrollRequest, exchange, open } from './http.ts';
import type { FleetClient } from './fleet.ts';

export interface Storm {
  readonly port: number;
  /** PEM file of the server's CA. */
  readonly ca: string;
  readonly devices: readonly FleetClient[];
  /** Kept connections, each of one of the devices by turns; a request that finds none free is not sent. */
  readonly connections: number;
  /** Requests a second. */
  readonly rate: number;
  readonly seconds: number;
}

export interface Seen {
  /** Seconds of sending. */
  readonly elapsed: number;
  /** Seconds until the last answer. */
  readonly answered: number;
  readonly sent: number;
  /** For which no connection was free. */
  readonly unsent: number;
  /** Milliseconds of each answer by its status, in ascending order. */
  readonly answers: Readonly<Record<string, readonly number[]>>;
}

export type StormMessage = { readonly type: 'ready' } | { readonly type: 'seen'; readonly seen: Seen };

/** Milliseconds between two looks at how much is due. */
const TICK = 5;
/** Connections that are opened at a time. */
const OPENED_AT_ONCE = 8;

interface Line {
  readonly socket: TLSSocket;
  readonly request: Buffer;
}

async function connectAll({ port, ca, devices, connections }: Storm): Promise<Line[]> {
  const authority = readFileSync(ca);
  const clients = devices.map(({ csr, certificate = '', key = '' }) => ({
    request: enrollRequest('simplereenroll', readFileSync(csr)),
    context: createSecureContext({ ca: authority, cert: readFileSync(certificate), key: readFileSync(key) }),
  }));
  const lines: Line[] = [];
  let next = 0;
  const opener = async (): Promise<void> => {
    for (let i = next++; i < connections; i = next++) {
      const client = clients[i % clients.length];
      if (client === undefined) throw new Error('no devices');
      const socket = await open({ port, context: client.context });
      // A connection without a request is closed after headers_timeout.
      await exchange(socket, CACERTS_REQUEST);
      lines.push({ socket, request: client.request });
    }
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, opener));
  return lines;
}

async function rage(storm: Storm, free: Line[]): Promise<Seen> {
  const answers = new Map<string, number[]>();
  const underWay = new Set<Promise<void>>();
  let [sent, unsent] = [0, 0];
  const send = async (line: Line): Promise<void> => {
    const start = performance.now();
    const outcome = await exchange(line.socket, line.request).then(
      ({ status }) => String(status),
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    answers.set(outcome, [...(answers.get(outcome) ?? []), performance.now() - start]);
    if (!line.socket.closed && !line.socket.readableEnded) free.push(line);
  };
  const start = performance.now();
  const elapsed = (): number => (performance.now() - start) / 1000;
  while (elapsed() < storm.seconds) {
    const due = Math.floor(elapsed() * storm.rate);
    while (sent + unsent < due) {
      const line = free.shift();
      if (line === undefined) {
        unsent++;
        continue;
      }
      sent++;
      const one = send(line).finally(() => underWay.delete(one));
      underWay.add(one);
    }
    await new Promise((resolve) => setTimeout(resolve, TICK));
  }
  const seconds = elapsed();
  await Promise.all(underWay);
  const answered = elapsed();
  const sorted = [...answers].map(([status, times]) => [status, times.toSorted((a, b) => a - b)] as const);
  return { elapsed: seconds, answered, sent, unsent, answers: Object.fromEntries(sorted) };
}

function isStorm(value: unknown): value is Storm {
  return typeof value === 'object' && value !== null && 'rate' in value && 'devices' in value;
}

/** Resolves when it is on its way. */
function tell(message: StormMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

const storm: unknown = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
if (!isStorm(storm)) throw new Error('not a storm');
const lines = await connectAll(storm);
await tell({ type: 'ready' });
await tell({ type: 'seen', seen: await rage(storm, lines) });
process.exit(0);
