/** Child process that holds a token's library: it finds the key and signs. */
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { initialized, serve } from '../../process/serve.ts';
import { type Handle, isLost, isolated, NoSessionLeft } from './cryptoki.ts';
import { chooseKey, keyWarnings, privateKeys, type SigningKey, signWith } from './keys.ts';
import { SessionPool } from './sessions.ts';
import { describeToken, findToken, isLoggedIn, logIn, type Token } from './token.ts';
import { type FoundToken, type KeyDescription, type NoSession, type SignerInit, TokenFault } from './wire.ts';

/** Losses that one call survives. */
const LOSSES = 3;

class OpenToken {
  readonly #init: SignerInit;
  readonly #token: Token;
  readonly found: FoundToken;
  readonly #sessions: SessionPool;
  /** Proven with a signature. */
  #key: SigningKey | undefined;
  /** After a loss, a handle counts only in the session that found it. */
  #foundIn: WeakMap<Handle, SigningKey> | undefined;
  /** For a token that does not say it of its sessions. A login applies to all of them, and is lost with the last. */
  #hasLoggedIn = false;
  /** Losses of sessions or of the login so far. */
  #losses = 0;
  /** A token without CKF_LOGIN_REQUIRED may refuse a login that it does not need. */
  #hasTriedLogin = false;

  constructor(init: SignerInit, token: Token) {
    this.#init = init;
    this.#token = token;
    this.found = describeToken(token);
    this.#sessions = new SessionPool(token, init.max_sessions);
  }

  /** @throws IsolatedError `TokenFault.PIN`: there must be no further login */
  logIn(): Promise<void> {
    return this.#sessions.use((session) => {
      this.#hasTriedLogin = true;
      if (!(isLoggedIn(this.#token, session) ?? this.#hasLoggedIn)) logIn(this.#token, session);
      this.#hasLoggedIn = true;
    });
  }

  /** Finds the key and proves it with a signature. */
  async open(): Promise<KeyDescription> {
    return this.#inSession(async (session) => {
      if (this.found.loginRequired) this.#requireLogin(session);
      const { object, spki } = await this.#currentKey(session);
      return { spki, sessions: this.#sessions.maximum, warnings: keyWarnings(this.#token, session, object) };
    });
  }

  sign(tbs: Buffer): Promise<Buffer> {
    return this.#inSession((session) => {
      const key = this.#currentKey(session);
      const sign = (chosen: SigningKey): Promise<Buffer> => signWith(this.#token, session, chosen, tbs);
      return key instanceof Promise ? key.then(sign) : sign(key);
    });
  }

  /** Checks that the key still exists: a token that vanished shows no objects. */
  async check(): Promise<void> {
    await this.#inSession((session) => {
      if (privateKeys(this.#token, session, this.#init).length > 0) return;
      // Without a login, a token shows no private objects.
      this.#requireLogin(session);
      throw new IsolatedError(TokenFault.KEY, `${this.#token.name} no longer shows its key`);
    });
  }

  close(): void {
    this.#token.lib.C_Finalize();
  }

  /** The key in use stays in use, whatever objects appear next to it. */
  #currentKey(session: Handle): SigningKey | Promise<SigningKey> {
    return (this.#foundIn === undefined ? this.#key : this.#foundIn.get(session)) ?? this.#findKey(session);
  }

  async #findKey(session: Handle): Promise<SigningKey> {
    const known = this.#key;
    // Concurrent work may log in before a search that began without a login reports its failure.
    const missing = this.#missingLogin(session);
    try {
      const [only, ...others] = known === undefined ? [] : privateKeys(this.#token, session, this.#init);
      const key =
        known !== undefined && only !== undefined && others.length === 0
          ? { ...known, object: only }
          : await chooseKey(this.#token, session, this.#init, known?.spki ?? this.#expected);
      this.#foundIn?.set(session, key);
      return (this.#key = key);
    } catch (error) {
      if (missing !== undefined && error instanceof IsolatedError && error.code === TokenFault.KEY) throw missing;
      throw error;
    }
  }

  get #expected(): Buffer | undefined {
    const { expectedSpki } = this.#init;
    return expectedSpki && Buffer.from(expectedSpki);
  }

  /**
   * A session or login that was lost while idle is opened again, the key is found again, and the work is done once
   * more, also when a busy machine takes longer than the token waits. Concurrent work fails with the same loss: only the
   * first closes sessions, because the login of the others ends with the last session.
   */
  async #inSession<T>(work: (session: Handle) => Promise<T> | T): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const losses = this.#losses;
      try {
        return await this.#sessions.use((session) => {
          if (attempt > 0) this.#requireLogin(session);
          return work(session);
        });
      } catch (error) {
        if (!isLost(error) || attempt === LOSSES) throw error;
        if (losses !== this.#losses) continue;
        this.#losses += 1;
        this.#sessions.closeIdle();
        this.#foundIn ??= new WeakMap();
        this.#hasLoggedIn = false;
      }
    }
  }

  /** @throws IsolatedError `TokenFault.LOGIN` if the user is not logged in and could be */
  #requireLogin(session: Handle): void {
    const missing = this.#missingLogin(session);
    if (missing !== undefined) throw missing;
  }

  /** `TokenFault.LOGIN` if the user is not logged in and could be. */
  #missingLogin(session: Handle): IsolatedError | undefined {
    const { loginWanted, loginRequired } = this.found;
    if (!loginWanted || (!loginRequired && this.#hasTriedLogin)) return undefined;
    if (isLoggedIn(this.#token, session) ?? this.#hasLoggedIn) return undefined;
    return new IsolatedError(TokenFault.LOGIN, `${this.#token.name} requires a login`);
  }
}

let opened: OpenToken | undefined;

async function answer<T>(work: () => T | Promise<T>): Promise<T | NoSession> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NoSessionLeft) return { sessions: error.sessions };
    throw isolated(error);
  }
}

/** The parent is the same program, so the payload has this shape. */
const isInit = (payload: unknown): payload is SignerInit => isObject(payload) && 'module' in payload;

serve({
  async init(payload) {
    if (!isInit(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    return answer(async () => {
      opened = new OpenToken(payload, await findToken(payload));
      return opened.found;
    });
  },
  methods: {
    logIn: () => answer(() => initialized(opened).logIn()),
    open: () => answer(() => initialized(opened).open()),
    sign: (tbs) =>
      answer(() => {
        if (!(tbs instanceof Uint8Array)) throw new IsolatedError('NOT_READY', 'nothing to sign');
        return initialized(opened).sign(Buffer.from(tbs.buffer, tbs.byteOffset, tbs.byteLength));
      }),
    check: () => answer(() => initialized(opened).check()),
  },
  close() {
    opened?.close();
  },
});
