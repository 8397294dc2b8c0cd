/** Faults at each call that reaches a server in the test's process. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';

/** `cut`: the connection; `hang`: no answer; `trickle`: a byte now and then. */
export type Fault = 'cut' | 'hang' | 'trickle' | 'garbage' | 'flood';
export type FaultAt = (name: string, when: 'before' | 'after', index: number) => Fault | undefined;

/** The calls that reach an upstream, in order, and what goes wrong with them. */
export class Steps {
  readonly seen: string[] = [];
  at: FaultAt = () => undefined;
  /** Refuses all calls. */
  isDown = false;

  /** @returns its index; undefined if nothing is to be done */
  begin(name: string): number | undefined {
    const index = this.seen.push(name) - 1;
    const fault = this.isDown ? 'cut' : this.at(name, 'before', index);
    return fault === undefined ? index : undefined;
  }
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** It never ends. */
  readonly isEndless?: boolean;
}

/** Carries a call out and answers it, unless a fault comes before or after. */
export async function serve(
  steps: Steps,
  name: string,
  response: ServerResponse,
  work: () => Promise<Reply> | Reply,
): Promise<void> {
  const index = steps.begin(name);
  if (index === undefined) return void response.socket?.destroy();
  const { status, headers, body = '', isEndless = false } = await work();
  const fault = steps.at(name, 'after', index);
  if (fault === 'cut') return void response.socket?.destroy();
  if (fault === 'hang') return;
  response.writeHead(status, headers);
  if (isEndless) return void response.write('{"a":"');
  if (fault === 'trickle') {
    const timer = setInterval(() => response.write('M'), 100).unref();
    response.once('close', () => clearInterval(timer));
    return;
  }
  response.end(fault === 'garbage' ? randomBytes(200) : fault === 'flood' ? Buffer.alloc(10 << 20, 'M') : body);
}
