/** Finds a username's directory entry and verifies its password by a bind (RFC 4511, RFC 4513). */
import { randomUUID } from 'node:crypto';
import { EqualityFilter, OrFilter, ResultCodeError, type Entry } from 'ldapts';
import type { Config } from '../../config/schema.ts';
import { measured } from '../../dependency-calls.ts';
import { describe, EstuaryError, isUnauthenticated, unavailable } from '../../errors.ts';
import type { FairLimiter } from '../../process/fair-limiter.ts';
import { type AsAccount, CredentialRefused, type GuardedAttempts } from '../guarded-attempts.ts';
import type { ClientIdBinding, LdapIdentity, PresentedCredentials } from '../identity.ts';
import { isBasic, parseBasic } from '../otp/basic.ts';
import { passwordLimiter } from '../otp/hashing-pool.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import { DirectoryRefusal, LdapConnection } from './connection.ts';
import { escapedInDn, escapedInFilter, inserted } from './escaping.ts';

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

/** What {@link Directory.lookUp} searches for. */
interface AccountSearch {
  readonly filter: string;
  readonly attributes: readonly string[];
  readonly required_group: string | undefined;
}

/** Concurrent connections, and waiting ones: few, so that a directory that is down does not hold many requests. */
const CONCURRENCY = 16;
const QUEUE = 32;
/** Milliseconds for which a failed server is tried last. */
const DEMOTED = 60_000;
/** Longer attribute values are ignored. */
const MAX_VALUE = 256;
const USABLE = /^[^\p{Cc}\u2028\u2029]+$/u;
/** Of Active Directory: an account is not a `member` of its primary group. */
const PRIMARY_GROUP = ['objectSid', 'primaryGroupID'];

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
   * @param as receives the DN of the entry that was found, before its password is tried
   * @throws CredentialRefused for an unknown entry or wrong password; EstuaryError 503 `LDAP_UNAVAILABLE`,
   * `PASSWORD_CHECK_BUSY`, or that of `as`
   */
  async authenticate(
    username: string,
    password: string,
    as: AsAccount = (_account, prove) => prove(),
  ): Promise<DirectoryEntry> {
    if (username === '' || password === '') throw new CredentialRefused('an empty name or password');
    return this.#ask((connection) => this.#find(connection, username, password, as));
  }

  /**
   * The values of the only entry that matches, searched by the service account.
   * @throws CredentialRefused unless exactly one entry matches and is in the group; EstuaryError 503
   */
  lookUp({ filter, attributes, required_group }: AccountSearch): Promise<(attribute: string) => readonly string[]> {
    return this.#ask(async (connection) => {
      await this.#bindAsService(connection);
      const wanted = [...attributes, ...PRIMARY_GROUP];
      const [entry, ...others] = await connection.search(this.#base, 'sub', filter, wanted);
      if (entry === undefined || others.length > 0) throw notExactlyOne(entry);
      await this.#checkGroup(connection, required_group, entry.dn, entry);
      return (attribute) => valuesOf(entry, attribute).filter(isUsable);
    });
  }

  /**
   * Contacts each server as {@link authenticate} does, without a password of a requester.
   * @param groups further groups to look at
   * @returns problems by URL
   */
  probe(
    groups: readonly (string | undefined)[] = [],
  ): Promise<readonly (readonly [url: string, problem: string | undefined])[]> {
    const { url: urls, required_group } = this.#options.settings;
    return Promise.all(
      urls.map(async (url) => {
        try {
          const look = (connection: LdapConnection) => this.#look(connection, [required_group, ...groups]);
          await LdapConnection.use(this.#serverAt(url), look);
          return [url, undefined] as const;
        } catch (error) {
          return [url, describe(error)] as const;
        }
      }),
    );
  }

  async #look(connection: LdapConnection, groups: readonly (string | undefined)[]): Promise<void> {
    const { search_base, bind_dn } = this.#options.settings;
    await this.#bindAsService(connection);
    const look = (dn: string) => connection.search(dn, 'base', '(objectClass=*)', ['1.1']);
    // Without an account and a base, any response will do: the directory need not show anything.
    if (bind_dn === undefined && search_base === undefined)
      return look('').then(
        () => undefined,
        (error: unknown) => {
          if (!(error instanceof Error && error.cause instanceof ResultCodeError)) throw error;
        },
      );
    for (const dn of [search_base, ...groups])
      if (dn !== undefined && (await look(dn)).length === 0)
        throw new Error(`${dn} does not exist, or ${bind_dn === undefined ? 'anonymous' : 'bind_dn'} may not read it`);
  }

  get #base(): string {
    return this.#options.settings.search_base ?? '';
  }

  #serverAt(url: string) {
    const { settings, ca } = this.#options;
    return { url, starttls: settings.starttls, ca: ca(), timeout: settings.timeout * 1000 };
  }

  async #ask<T>(work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    const release = await this.#limiter.acquire({ waitMs: this.#options.settings.timeout * 1000 });
    try {
      return await measured(
        { dependency: 'ldap' },
        () => this.#askServers(work),
        (error) => error instanceof CredentialRefused || isUnauthenticated(error),
      );
    } finally {
      release();
    }
  }

  async #askServers<T>(work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    const { settings, retryAfter, now } = this.#options;
    const problems: string[] = [];
    const since = (url: string): number => (now() - (this.#failed.get(url) ?? -Infinity) < DEMOTED ? 1 : 0);
    for (const url of settings.url.toSorted((a, b) => since(a) - since(b))) {
      try {
        const answer = await LdapConnection.use(this.#serverAt(url), work);
        this.#failed.delete(url);
        return answer;
      } catch (error) {
        // One server's answer is final: the next one would count a wrong password twice.
        if (error instanceof DirectoryRefusal) throw new CredentialRefused(error.message);
        if (error instanceof CredentialRefused || error instanceof EstuaryError) throw error;
        this.#failed.set(url, now());
        problems.push(`${url}: ${describe(error)}`);
      }
    }
    throw unavailable('LDAP_UNAVAILABLE', 'The directory is temporarily unavailable. Try again later.', {
      retryAfter,
      detail: problems.join('; '),
    });
  }

  async #find(connection: LdapConnection, username: string, password: string, as: AsAccount): Promise<DirectoryEntry> {
    const { user_dn: template, required_group } = this.#options.settings;
    if (template === undefined) return this.#bySearch(connection, username, password, as);
    const dn = inserted(template, { username: escapedInDn(username) });
    const read = await connection.prove(dn, password, this.#wanted);
    if (read.status === 'rejected') throw read.reason;
    const [entry] = read.value;
    if (entry === undefined) throw new Error(`${dn} may not read its entry`);
    await this.#checkGroup(connection, required_group, entry.dn, entry);
    return this.#described(entry);
  }

  /** Takes the same steps for unknown names, so that timing reveals little. */
  async #bySearch(
    connection: LdapConnection,
    username: string,
    password: string,
    as: AsAccount,
  ): Promise<DirectoryEntry> {
    const { search_filter, required_group } = this.#options.settings;
    await this.#bindAsService(connection);
    const filter = inserted(search_filter, { username: escapedInFilter(username) });
    const [entry, ...others] = await connection.search(this.#base, 'sub', filter, this.#wanted);
    const only = others.length === 0 ? entry : undefined;
    const bindAs = only?.dn ?? `cn=${randomUUID()},${this.#base}`;
    return as(only?.dn ?? username, async () => {
      const outsider = await refusalOf(() => this.#checkGroup(connection, required_group, bindAs, only));
      const unproven = await refusalOf(() => connection.prove(bindAs, password, ['1.1']));
      if (only === undefined) throw notExactlyOne(entry);
      for (const refusal of [unproven, outsider]) if (refusal !== undefined) throw refusal;
      return this.#described(only);
    });
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
    const { client_id_attribute, attributes, required_group } = this.#options.settings;
    return [client_id_attribute, ...attributes, ...(required_group === undefined ? [] : PRIMARY_GROUP)];
  }

  async #checkGroup(
    connection: LdapConnection,
    group: string | undefined,
    dn: string,
    entry: Entry | undefined,
  ): Promise<void> {
    if (group === undefined) return;
    const { client_id_attribute } = this.#options.settings;
    const equal = (attribute: string, value: string | Buffer) => new EqualityFilter({ attribute, value });
    const filters = [equal('member', dn), equal('uniqueMember', dn)];
    const uid = client_id_attribute.toLowerCase() === 'uid' && entry && valuesOf(entry, 'uid')[0];
    if (typeof uid === 'string') filters.push(equal('memberUid', uid));
    const primary = entry && primaryGroup(entry);
    if (primary !== undefined) filters.push(equal('objectSid', primary));
    const found = await connection.search(group, 'base', new OrFilter({ filters }), ['1.1']);
    if (found.length === 0) throw new CredentialRefused(`the entry is not in the group ${group}`);
  }

  #described(entry: Entry): DirectoryEntry {
    const { client_id_attribute, attributes } = this.#options.settings;
    const [client_id, ...more] = valuesOf(entry, client_id_attribute);
    if (client_id === undefined || more.length > 0 || !isUsable(client_id))
      throw new CredentialRefused(`the entry ${entry.dn} does not have exactly one usable ${client_id_attribute}`);
    const named = attributes.map((name) => [name.toLowerCase(), valuesOf(entry, name).filter(isUsable)] as const);
    return { client_id, attributes: new Map(named) };
  }
}

const isUsable = (value: string): boolean => value.length <= MAX_VALUE && USABLE.test(value);

const notExactlyOne = (entry: Entry | undefined): CredentialRefused =>
  new CredentialRefused(`${entry === undefined ? 'no entry' : 'more than one entry'} matches`);

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
  return rawValuesOf(entry, name).filter((value) => typeof value === 'string');
}

function rawValuesOf(entry: Entry, name: string): readonly (string | Buffer)[] {
  return Object.entries(entry).flatMap(([key, value]) =>
    key !== 'dn' && key.toLowerCase() === name.toLowerCase() ? [value].flat() : [],
  );
}

/** The objectSid of an account's primary group: the SID of its domain, and the relative ID (MS-DTYP §2.4.2.2). */
function primaryGroup(entry: Entry): Buffer | undefined {
  const [sid] = rawValuesOf(entry, 'objectSid');
  const [id = ''] = valuesOf(entry, 'primaryGroupID');
  if (!Buffer.isBuffer(sid) || sid.length < 12 || !/^\d{1,10}$/.test(id) || Number(id) > 0xffff_ffff) return undefined;
  const group = Buffer.from(sid);
  group.writeUInt32LE(Number(id), group.length - 4);
  return group;
}

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
    const credentials = parseBasic(authorization);
    const { username = '', password = '' } = credentials ?? {};
    const entry = await this.#attempts.run(username, { ...context, address }, (_keys, as) => {
      // RFC 4513 §5.1.3: names and passwords of a directory are UTF-8.
      if (credentials?.isUtf8 !== true) throw new CredentialRefused('the Basic credentials are malformed or not UTF-8');
      return this.#directory.authenticate(username, password, as);
    });
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
