import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { runText } from './command.ts';

/** MIT's GSS-API flags (gssapi.h). */
export const FLAG = { MUTUAL: 0x2, SEQUENCE: 0x8, DCE_STYLE: 0x1000 } as const;

export interface NegotiateOptions {
  /** `Kdc.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** Path of the credential cache. */
  readonly cache: string;
  /** Host-based name of the service asked for. */
  readonly service?: string;
  readonly flags?: number;
  /** `krb5`: the bare Kerberos mechanism, without SPNEGO around it. */
  readonly mechanism?: 'spnego' | 'krb5';
}

const CHILD = fileURLToPath(new URL('./negotiate-child.ts', import.meta.url));

function command(options: NegotiateOptions): { args: string[]; env: Record<string, string> } {
  const { service = 'HTTP@localhost', flags = FLAG.MUTUAL, mechanism = 'spnego' } = options;
  return {
    args: [CHILD, service, String(flags), mechanism],
    env: { ...options.env, KRB5CCNAME: `FILE:${options.cache}` },
  };
}

/** The first token (base64) of a real GSS-API client, in a separate process. */
export async function initialToken(options: NegotiateOptions): Promise<string> {
  const { args, env } = command(options);
  return (await runText(process.execPath, args, { env })).trim();
}

/** Several tokens of one client, each fresh. */
export async function initialTokens(options: NegotiateOptions, count: number): Promise<string[]> {
  const { args, env } = command(options);
  const output = await runText(process.execPath, [...args, String(count)], { env, timeout: 200_000 });
  return output.trim().split('\n');
}

/** A real GSS-API client that waits for the server's answer. */
export async function negotiation(
  options: NegotiateOptions,
): Promise<{ token: string; finish(reply: string): Promise<string> }> {
  const { args, env } = command(options);
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env, WAIT_FOR_REPLY: '1' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // A child that has ended fails the test by its missing verdict.
  child.stdin.on('error', () => undefined);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const token = await lines.next();
  if (token.done === true) throw new Error('the client made no token');
  return {
    token: token.value,
    /** Gives the client the server's token; `complete` when it accepts the server as who it claims to be. */
    finish: async (reply) => {
      const ended = once(child, 'exit');
      child.stdin.end(`${reply}\n`);
      const verdict = await lines.next();
      await ended;
      return verdict.done === true ? 'no verdict' : verdict.value;
    },
  };
}
