/**
 * HTTPS with a client key in a PKCS#11 token. TLS waits for the token in the thread that has the connection, so a child
 * process makes the calls. A token that hangs costs this process only, which is killed and started again.
 */
import type { SecureVersion } from 'node:tls';
import { describe, EstuaryError } from '../../errors.ts';
import { pemOf, type Certificate } from '../../pki/x509/certificate.ts';
import { IsolatedProcess } from '../../process/isolated-process.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { isObject, startedModule } from '../../process/protocol.ts';
import { loggedIn } from '../pkcs11/logins.ts';
import { moduleEnvironment, type KeyReference, type TokenAccess } from '../pkcs11/wire.ts';
import { TransportError, type HttpAnswer, type HttpCall, type HttpCaller } from '../../https-client.ts';

interface TokenClientOptions {
  readonly url: string;
  readonly maxVersion: SecureVersion;
  readonly certificates: readonly Certificate[];
  readonly trustAnchors: readonly Certificate[] | undefined;
  readonly token: TokenAccess & KeyReference;
  readonly engine: string;
  /** Receives what the token's library prints to stderr, line by line. */
  readonly onOutput: (line: string) => void;
  readonly maxCalls: number;
  readonly retryAfter: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
}

/** The child's start payload. */
export interface TokenClientInit extends Pick<TokenClientOptions, 'url' | 'maxVersion' | 'engine'> {
  readonly access: TokenAccess & KeyReference;
  /** PEM. */
  readonly ca: string | undefined;
  readonly cert: string;
}

export type TokenCallResult =
  | (Omit<HttpAnswer, 'body'> & { readonly body: Uint8Array })
  | (Pick<TransportError, 'message' | 'mayHaveArrived' | 'isTooLong'> & { readonly tokenFailed: boolean });

/** Milliseconds that the child has to load the token's library, and to report a call that is over. */
const START = 20_000;
const GRACE = 1000;

export class TokenHttpClient implements HttpCaller {
  readonly #process: IsolatedProcess;

  constructor({ url, maxVersion, certificates, trustAnchors, token, engine, ...options }: TokenClientOptions) {
    const { maxCalls, retryAfter, env, log, onOutput } = options;
    const logIn = loggedIn(token.pin);
    const init: TokenClientInit = {
      ...{ url, maxVersion, engine, access: token },
      ca: trustAnchors && pemOf(trustAnchors),
      cert: pemOf(certificates),
    };
    this.#process = new IsolatedProcess({
      module: startedModule('ca/est/token-client-child'),
      code: 'PKCS11',
      subject: 'The token of the client certificate',
      env: { ...moduleEnvironment(env), PKCS11_MODULE_PATH: token.module },
      init,
      opened: async (call, found) => {
        await logIn(call, found);
        await call('open');
      },
      onOutput,
      secret: token.pin,
      startTimeoutMs: START,
      concurrency: maxCalls,
      queueLimit: maxCalls,
      retryAfter,
      log,
    });
  }

  /** @throws IsolatedError if the key cannot be used; EstuaryError if the module crashed or hung */
  start(): Promise<void> {
    return this.#process.start();
  }

  /** Another start would fail, and may harm. */
  get hasGivenUp(): boolean {
    return this.#process.hasGivenUp;
  }

  /** Process ID of the child, if running. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  async call(call: HttpCall): Promise<HttpAnswer> {
    const result = await this.#result(call);
    if ('status' in result) return { ...result, body: Buffer.from(result.body) };
    // Its session is lost: only a new process logs in again.
    if (result.tokenFailed) void this.#process.restart(result.message);
    throw new TransportError(result.message, result.mayHaveArrived, result);
  }

  async #result(call: HttpCall): Promise<TokenCallResult> {
    try {
      const deadlineMs = Math.max(0, call.deadline - Date.now()) + GRACE;
      const result = await this.#process.call('call', call, { deadlineMs });
      if (isResult(result)) return result;
      throw new TypeError('not a result of a call');
    } catch (error) {
      // A process that is down, or has no turn, sent nothing.
      const sentNothing = error instanceof EstuaryError && error.kind === 'unavailable';
      throw new TransportError(describe(error), !sentNothing, { cause: error });
    }
  }

  close(): void {
    void this.#process.stop();
  }
}

/** The child is the same program. */
const isResult = (value: unknown): value is TokenCallResult =>
  isObject(value) && ('mayHaveArrived' in value || ('status' in value && value['body'] instanceof Uint8Array));
