/** Child process that has the TLS connections to an EST server, because their key is in a PKCS#11 token. */
import { createSecureContext } from 'node:tls';
import { codeOf } from '../../errors.ts';
import { withPinFile } from '../../pki/pkcs11-engine.ts';
import { privateKeyUri } from '../../pki/pkcs11-uri.ts';
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { initialized, serve } from '../../process/serve.ts';
import { named } from '../pkcs11/cryptoki.ts';
import { requirePrivateKeys } from '../pkcs11/keys.ts';
import { SessionPool } from '../pkcs11/sessions.ts';
import { describeToken, findToken, logIn, type Token } from '../pkcs11/token.ts';
import { anchoredAt, HttpClient, TransportError, type HttpCall } from '../../https-client.ts';
import type { TokenClientInit, TokenCallResult } from './token-client.ts';

interface Opened {
  readonly init: TokenClientInit;
  readonly token: Token;
  /** One session, which keeps the login. */
  readonly pool: SessionPool;
}

let opened: Opened | undefined;
let client: HttpClient | undefined;

/** The parent is the same program, so the payloads have these shapes. */
const isInit = (payload: unknown): payload is TokenClientInit => isObject(payload) && 'engine' in payload;
const isCall = (args: unknown): args is HttpCall => isObject(args) && 'method' in args;

/**
 * The engine would try any PIN, as often as it is asked. It gets one that the token has accepted, for a key that is
 * there. A token with a single session gives it to the engine.
 */
async function open({ init, token, pool }: Opened): Promise<HttpClient> {
  await pool.use((session) => requirePrivateKeys(token, session, init.access));
  if (token.info.maxSessions === 1) pool.closeIdle();
  const { url, maxVersion, engine, ca, cert, access } = init;
  const { token_label, slot, manufacturer, model, serial, key_label, key_id } = access;
  const names = { token: token_label, manufacturer, model, serial, 'slot-id': slot, object: key_label, id: key_id };
  const key = privateKeyUri(names);
  const tls = {
    ...anchoredAt(ca),
    cert,
    maxVersion,
    privateKeyEngine: engine,
  };
  const context = (source: string): HttpClient =>
    new HttpClient(url, { secureContext: createSecureContext({ ...tls, privateKeyIdentifier: `${key}${source}` }) });
  try {
    const { pin } = access;
    if (pin === undefined || pin === '') return context('');
    return withPinFile(pin, (source) => context(`;pin-source=file:${source}`));
  } catch (error) {
    const hint = token.isSerial ? " (libp11's engine always sets CKF_OS_LOCKING_OK, which the module refuses)" : '';
    throw new IsolatedError(codeOf(error), `${error instanceof Error ? error.message : String(error)}${hint}`);
  }
}

serve({
  async init(payload) {
    if (!isInit(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    const token = await findToken(payload.access);
    opened = { init: payload, token, pool: new SessionPool(token, 1) };
    return describeToken(token);
  },
  methods: {
    logIn: () =>
      named(() => {
        const { token, pool } = initialized(opened);
        return pool.use((session) => logIn(token, session));
      }),
    open: () => named(async () => void (client = await open(initialized(opened)))),
    async call(args): Promise<TokenCallResult> {
      if (!isCall(args)) throw new IsolatedError('NOT_READY', 'not a call');
      try {
        return await initialized(client).call({
          ...args,
          ...(args.body === undefined ? {} : { body: Buffer.from(args.body) }),
        });
      } catch (error) {
        if (!(error instanceof TransportError)) throw error;
        const { message, mayHaveArrived, isTooLong, cause } = error;
        return { message, mayHaveArrived, isTooLong, tokenFailed: codeOf(cause).startsWith('ERR_OSSL_') };
      }
    },
  },
});
