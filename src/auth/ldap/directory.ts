/** Finds a username's directory entry and verifies its password by a bind (RFC 4511, RFC 4513). */
import { randomUUID } from 'node:crypto';
import type { Entry } from 'ldapts';
import type { Config } from '../../config/schema.ts';
import { measured } from '../../dependency-calls.ts';
import { describe, unavailable } from '../../errors.ts';
import type { FairLimiter } from '../../process/fair-limiter.ts';
import { CredentialRefused, type GuardedAttempts } from '../guarded-attempts.ts';
import type { ClientIdBinding, LdapIdentity, PresentedCredentials } from '../identity.ts';
import { isBasic, parseBasic } from '../otp/basic.ts';
import { passwordLimiter } from '../otp/hashing-pool.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import { DirectoryRefusal, LdapConnection } from './connection.ts';

export type LdapSettings = NonNullable<Config['auth']['ldap']>;

interface DirectoryOptions {
  readonly settings: LdapSettings;
  /** PEM; undefined: the CAs of Node.js. */
  readonly ca: () => string | undefined;
  readonly retryAfter: number;
  readonly now: () => number;
}

/** What an entry says about its device. */
interface DirectoryEntry {
  readonly client_id: string;
  /** The configured attributes, by lowercase name. */
  readonly attributes: ReadonlyMap<string, readonly string[]>;
}

/** Concurrent connections, and waiting ones: few, so that a directory that is down does not hold many requests. */
const CONCURRENCY = 16;
const QUEUE = 32;
/** Milliseconds for which a failed server is tried last. */
const DEMOTED = 60_000;
/** Longer attribute values are ignored. */
const MAX_VALUE = 256;
const USABLE = /^[^\p{Cc}\u2028\u2029]+$/u;

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #limiter: FairLimiter;
  /** Time of each server's latest failure. */
  readonly #failed = new Map<string, number>();

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#limiter = passwordLimiter({ concurrency: CONCURRENCY, queue: QUEUE }, options.retryAfter);
  }

  /**
   * The entry with this password.
   * @throws CredentialRefused for an unknown entry or wrong password; EstuaryError 503 `LDAP_UNAVAILABLE`,
   * `PASSWORD_CHECK_BUSY`
   */
  async authenticate(username: string, password: string): Promise<DirectoryEntry> {
    if (username === '' || password === '') throw new CredentialRefused('an empty name or password');
    const { timeout } = this.#options.settings;
    const release = await this.#limiter.acquire({ waitMs: timeout * 1000 });
    try {
      return await measured(
        { dependency: 'ldap' },
        () => this.#ask(username, password),
        (error) => error instanceof CredentialRefused,
      );
    } finally {
      release();
    }
  }

  /** Contacts each server as {@link authenticate} does, without a password of a requester. @returns problems by URL */
  probe(): Promise<readonly (readonly [url: string, problem: string | undefined])[]> {
    const { url: urls } = this.#options.settings;
    return Promise.all(
      urls.map(async (url) => {
        try {
          await LdapConnection.use(this.#serverAt(url), (connection) => this.#look(connection));
          return [url, undefined] as const;
        } catch (error) {
          return [url, describe(error)] as const;
        }
      }),
    );
  }

  async #look(connection: LdapConnection): Promise<void> {
    const { search_base, required_group, bind_dn } = this.#options.settings;
    await this.#bindAsService(connection);
    const look = (dn: string) => connection.search(dn, 'base', '(objectClass=*)', ['1.1']);
    // Without an account, any response will do: the directory need not show anything.
    if (bind_dn === undefined) {
      await refusalOf(() => look(''));
      return;
    }
    for (const dn of [search_base, required_group])
      if (dn !== undefined && (await look(dn)).length === 0)
        throw new Error(`${dn} does not exist, or bind_dn may not read it`);
  }

  #serverAt(url: string) {
    const { settings, ca } = this.#options;
    return { url, starttls: settings.starttls, ca: ca(), timeout: settings.timeout * 1000 };
  }

  async #ask(username: string, password: string): Promise<DirectoryEntry> {
    const { settings, retryAfter, now } = this.#options;
    const problems: string[] = [];
    const since = (url: string): number => (now() - (this.#failed.get(url) ?? -Infinity) < DEMOTED ? 1 : 0);
    for (const url of settings.url.toSorted((a, b) => since(a) - since(b))) {
      try {
        const entry = await LdapConnection.use(this.#serverAt(url), (connection) =>
          this.#find(connection, username, password),
        );
        this.#failed.delete(url);
        return entry;
      } catch (error) {
        // One server's answer is final: the next one would count a wrong password twice.
        if (error instanceof DirectoryRefusal) throw new CredentialRefused(error.message);
        if (error instanceof CredentialRefused) throw error;
        this.#failed.set(url, now());
        problems.push(`${url}: ${describe(error)}`);
      }
    }
    throw unavailable('LDAP_UNAVAILABLE', 'The directory is temporarily unavailable. Try again later.', {
      retryAfter,
      detail: problems.join('; '),
    });
  }

  async #find(connection: LdapConnection, username: string, password: string): Promise<DirectoryEntry> {
    const { user_dn: template } = this.#options.settings;
    if (template === undefined) return this.#bySearch(connection, username, password);
    const dn = template.replaceAll('{username}', escapedInDn(username));
    await connection.bind(dn, password);
    const [entry] = await connection.search(dn, 'base', '(objectClass=*)', this.#wanted);
    if (entry === undefined) throw new CredentialRefused('the entry cannot be read');
    await this.#checkGroup(connection, entry.dn, entry);
    return this.#described(entry);
  }

  /** Takes the same steps for unknown names, so that timing reveals little. */
  async #bySearch(connection: LdapConnection, username: string, password: string): Promise<DirectoryEntry> {
    const { search_base: base = '', search_filter } = this.#options.settings;
    await this.#bindAsService(connection);
    const filter = search_filter.replaceAll('{username}', escapedInFilter(username));
    const [entry, ...others] = await connection.search(base, 'sub', filter, this.#wanted);
    const only = others.length === 0 ? entry : undefined;
    const bindAs = only?.dn ?? `cn=${randomUUID()},${base}`;
    const outsider = await refusalOf(() => this.#checkGroup(connection, bindAs, only));
    const unproven = await refusalOf(() => connection.bind(bindAs, password));
    if (only === undefined)
      throw new CredentialRefused(`${entry === undefined ? 'no entry' : 'more than one entry'} matches`);
    for (const refusal of [unproven, outsider]) if (refusal !== undefined) throw refusal;
    return this.#described(only);
  }

  /** A failed bind of our own search account is not the requester's failure. */
  async #bindAsService(connection: LdapConnection): Promise<void> {
    const { bind_dn, bind_password } = this.#options.settings;
    if (bind_dn === undefined || bind_password === undefined) return;
    try {
      await connection.bind(bind_dn, bind_password.reveal().toString('utf8'));
    } catch (error) {
      throw new Error(`auth.ldap.bind_dn: ${describe(error)}`, { cause: error });
    }
  }

  get #wanted(): readonly string[] {
    const { client_id_attribute, attributes } = this.#options.settings;
    return [client_id_attribute, ...attributes];
  }

  async #checkGroup(connection: LdapConnection, dn: string, entry: Entry | undefined): Promise<void> {
    const { required_group: group, client_id_attribute } = this.#options.settings;
    if (group === undefined) return;
    const member = escapedInFilter(dn);
    const uid = client_id_attribute.toLowerCase() === 'uid' && entry && valuesOf(entry, 'uid')[0];
    const posix = typeof uid === 'string' ? `(memberUid=${escapedInFilter(uid)})` : '';
    const filter = `(|(member=${member})(uniqueMember=${member})${posix})`;
    const found = await connection.search(group, 'base', filter, ['1.1']);
    if (found.length === 0) throw new CredentialRefused(`the entry is not in the group ${group}`);
  }

  #described(entry: Entry): DirectoryEntry {
    const { client_id_attribute, attributes } = this.#options.settings;
    const [client_id, ...more] = valuesOf(entry, client_id_attribute);
    if (client_id === undefined || more.length > 0 || client_id.length > MAX_VALUE || !USABLE.test(client_id))
      throw new CredentialRefused(`the entry ${entry.dn} does not have exactly one usable ${client_id_attribute}`);
    const named = attributes.map((name) => {
      const usable = valuesOf(entry, name).filter((value) => value.length <= MAX_VALUE && USABLE.test(value));
      return [name.toLowerCase(), usable] as const;
    });
    return { client_id, attributes: new Map(named) };
  }
}

async function refusalOf(check: () => Promise<unknown>): Promise<Error | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof CredentialRefused || error instanceof DirectoryRefusal) return error;
    throw error;
  }
}

/** Attribute values; the directory may use any case for the name. */
function valuesOf(entry: Entry, name: string): readonly string[] {
  return Object.entries(entry).flatMap(([key, value]) =>
    key !== 'dn' && key.toLowerCase() === name.toLowerCase()
      ? [value].flat().filter((one) => typeof one === 'string')
      : [],
  );
}

const hex = (octets: Buffer): string => octets.toString('hex').replace(/../g, '\\$&');

/** RFC 4514 §2.4: hex-escapes every octet except letters and digits. */
const escapedInDn = (value: string): string =>
  value.replace(/[^A-Za-z0-9]+/g, (part) => hex(Buffer.from(part, 'utf8')));

/** RFC 4515 §3. */
const escapedInFilter = (value: string): string => value.replace(/[\0()*\\]/g, (one) => hex(Buffer.from(one)));

/** Authenticates EST requests by HTTP Basic against a directory. */
export class LdapPlugin implements AuthPlugin {
  readonly method = 'ldap';
  /** A failure is committed together with its count. */
  readonly auditsFailures = true;
  readonly #directory: Pick<Directory, 'authenticate'>;
  readonly #attempts: GuardedAttempts;
  readonly #binding: ClientIdBinding;

  constructor(directory: Pick<Directory, 'authenticate'>, attempts: GuardedAttempts, binding: ClientIdBinding) {
    this.#directory = directory;
    this.#attempts = attempts;
    this.#binding = binding;
  }

  async authenticate(
    { authorization, address }: PresentedCredentials,
    context: AuthContext,
  ): Promise<LdapIdentity | undefined> {
    if (!isBasic(authorization)) return undefined;
    const { username = '', password = '' } = parseBasic(authorization) ?? {};
    const entry = await this.#attempts.run(username, { ...context, address }, () =>
      this.#directory.authenticate(username, password),
    );
    const { client_id } = entry;
    return {
      method: 'ldap',
      requester: `ldap:${client_id}`,
      display: client_id,
      note: `as ${JSON.stringify(username)}`,
      binding: this.#binding,
      ...entry,
    };
  }
}
