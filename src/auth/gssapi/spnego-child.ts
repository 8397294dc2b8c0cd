/**
 * Child process for the Kerberos library (through the optional npm package `kerberos`). Library calls block, for
 * minutes if gssproxy stalls, so they must not run in the server.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IsolatedError } from '../../process/protocol.ts';
import { serve } from '../../process/serve.ts';
import { readAcceptArgs, readStartArgs } from './spnego-protocol.ts';
import type { Accepted } from './spnego-protocol.ts';

type Kerberos = Pick<typeof import('kerberos'), 'initializeServer'>;

let kerberos: Kerberos | undefined;
let service = '';

async function loadKerberos(): Promise<Kerberos> {
  try {
    const { default: loaded } = await import('kerberos');
    return loaded;
  } catch (error) {
    throw new IsolatedError('NO_PACKAGE', message(error), { permanent: true });
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A new acceptor with our credentials; reading the keytab each time picks up a replaced one. */
async function acceptor(): Promise<Awaited<ReturnType<Kerberos['initializeServer']>>> {
  if (kerberos === undefined) throw new IsolatedError('UNEXPECTED', 'not started');
  try {
    return await kerberos.initializeServer(service);
  } catch (error) {
    throw new IsolatedError('NO_CREDENTIALS', message(error));
  }
}

/** Octets that the replay cache may need for a ticket, and more. */
const SPACE = 65_536;

/**
 * Why the library's replay cache cannot be written; undefined if it can, or gssproxy has its own. The library then
 * rejects every ticket, as if it were invalid.
 */
function replayCacheProblem(): string | undefined {
  const { KRB5RCACHEDIR, TMPDIR, GSS_USE_PROXY } = process.env;
  if (GSS_USE_PROXY !== undefined) return undefined;
  const user = process.geteuid?.() ?? 0;
  const folder = KRB5RCACHEDIR ?? TMPDIR ?? '/var/tmp';
  const file = join(folder, `krb5_${user}.rcache2`);
  const trial = join(folder, `.estuary-${process.pid}`);
  try {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
    const opened = openSync(file, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
    const { uid } = fstatSync(opened);
    closeSync(opened);
    if (uid !== user) return `replay cache ${file} belongs to another user`;
    writeFileSync(trial, Buffer.alloc(SPACE));
    return undefined;
  } catch (error) {
    return `replay cache ${file} cannot be written: ${message(error)}`;
  } finally {
    rmSync(trial, { force: true });
  }
}

/** gss_accept_sec_context with the client's only token. */
async function accept(token: string): Promise<Accepted> {
  const server = await acceptor();
  try {
    await server.step(token);
  } catch (error) {
    const problem = replayCacheProblem();
    if (problem !== undefined) throw new IsolatedError('REPLAY_CACHE', problem);
    throw new IsolatedError('REFUSED', message(error));
  }
  // `username` of an incomplete context is not authenticated.
  if (!server.contextComplete) throw new IsolatedError('REFUSED', 'the negotiation needs another leg');
  return { principal: server.username, replyToken: server.response };
}

serve({
  async init(payload) {
    ({ service } = readStartArgs(payload));
    kerberos = await loadKerberos();
  },
  methods: {
    accept: async (args) => await accept(readAcceptArgs(args).token),
    /** Whether credentials are available now. */
    probe: async () => {
      await acceptor();
    },
    replayCache: () => Promise.resolve(replayCacheProblem() ?? ''),
  },
});
