/** Child process that has the TLS connections to an EST server, because their key is in a PKCS#11 token. */
import { createSecureContext } from 'node:tls';
import { codeOf } from '../../errors.ts';
import { withPinFile } from '../../pki/pkcs11-engine.ts';
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { serve } from '../../process/serve.ts';
import { HttpClient, TransportError, type HttpCall } from '../remote/http.ts';
import { isPinFault, type TokenClientInit, type TokenCallResult } from './token-client.ts';

let client: HttpClient | undefined;

/** The parent is the same program, so the payloads have these shapes. */
const isInit = (payload: unknown): payload is TokenClientInit => isObject(payload) && 'engine' in payload;
const isCall = (args: unknown): args is HttpCall => isObject(args) && 'method' in args;

/** Opens the token: libp11 logs in once for each context, and a process can open one only. */
function open({ url, maxVersion, engine, key, pin, ca, cert }: TokenClientInit): HttpClient {
  const tls = { ...(ca === undefined ? {} : { ca }), cert, maxVersion, privateKeyEngine: engine };
  try {
    const secureContext = withPinFile(pin, (source) =>
      createSecureContext({ ...tls, privateKeyIdentifier: `${key};pin-source=file:${source}` }),
    );
    return new HttpClient(url, { secureContext });
  } catch (error) {
    const code = codeOf(error);
    const message = error instanceof Error ? error.message : String(error);
    throw new IsolatedError(code, message, { permanent: isPinFault(code) });
  }
}

serve({
  init(payload) {
    if (!isInit(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    client = open(payload);
  },
  methods: {
    async call(args): Promise<TokenCallResult> {
      if (client === undefined || !isCall(args)) throw new IsolatedError('NOT_READY', 'called before init');
      try {
        return await client.call({ ...args, ...(args.body === undefined ? {} : { body: Buffer.from(args.body) }) });
      } catch (error) {
        if (!(error instanceof TransportError)) throw error;
        const { message, mayHaveArrived, isTooLong, cause } = error;
        return { message, mayHaveArrived, isTooLong, tokenFailed: codeOf(cause).startsWith('ERR_OSSL_') };
      }
    },
  },
});
