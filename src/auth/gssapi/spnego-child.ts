/**
 * Child process for the Kerberos library (through the optional npm package `kerberos`). Library calls block, for
 * minutes if gssproxy stalls, so they must not run in the server.
 */
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

/** gss_accept_sec_context with the client's only token. */
async function accept(token: string): Promise<Accepted> {
  const server = await acceptor();
  try {
    await server.step(token);
  } catch (error) {
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
  },
});
