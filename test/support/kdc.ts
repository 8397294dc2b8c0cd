import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { copyFile, mkdtemp, open, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './command.ts';
import { accepts, freePort } from './ports.ts';
import { killed, untilReady } from './spawned.ts';
import { removeFolder } from './folders.ts';

export const REALM = 'EXAMPLE.TEST';
/** The service that the tests' server is: curl asks for HTTP/<host of the URL>. */
export const SERVICE = `HTTP/localhost@${REALM}`;

const SBIN = '/usr/local/sbin:/usr/sbin:/sbin';

/** A real MIT Kerberos KDC on loopback, with its own realm, database and krb5.conf in a temporary folder. */
export class Kdc {
  readonly dir: string;
  readonly #port: number;
  #process: ChildProcess | undefined;
  #caches = 0;

  private constructor(dir: string, port: number) {
    this.dir = dir;
    this.#port = port;
  }

  /** Makes the realm EXAMPLE.TEST with HTTP/localhost (keytab: {@link keytab}) and starts the KDC. */
  static async start(): Promise<Kdc> {
    const kdc = new Kdc(await mkdtemp(join(tmpdir(), 'estuary-kdc-')), await freePort());
    await writeFile(join(kdc.dir, 'krb5.conf'), kdc.krb5Config());
    await writeFile(join(kdc.dir, 'kdc.conf'), kdc.#kdcConfig());
    await run('kdb5_util', ['create', '-s', '-P', 'master', '-r', REALM], { env: kdc.#adminEnv });
    await kdc.addService('HTTP/localhost');
    await kdc.exportKeys('HTTP/localhost', kdc.keytab);
    await kdc.up();
    return kdc;
  }

  /** The environment of clients and servers of this realm. */
  get env(): { KRB5_CONFIG: string; KRB5RCACHEDIR: string } {
    return { KRB5_CONFIG: join(this.dir, 'krb5.conf'), KRB5RCACHEDIR: this.dir };
  }

  get keytab(): string {
    return join(this.dir, 'http.keytab');
  }

  get #adminEnv(): Record<string, string> {
    const path = `${process.env['PATH'] ?? ''}:${SBIN}`;
    return { ...this.env, KRB5_KDC_PROFILE: join(this.dir, 'kdc.conf'), PATH: path };
  }

  /** The text of a krb5.conf for this realm; `extra` are further lines of [libdefaults]. */
  krb5Config(extra = ''): string {
    return `[libdefaults]
 default_realm = ${REALM}
 dns_lookup_realm = false
 dns_lookup_kdc = false
${extra}
[realms]
 ${REALM} = {
  kdc = 127.0.0.1:${this.#port}
 }
[domain_realm]
 localhost = ${REALM}
[logging]
 kdc = FILE:${join(this.dir, 'kdc.log')}
`;
  }

  #kdcConfig(): string {
    return `[kdcdefaults]
 kdc_listen = 127.0.0.1:${this.#port}
 kdc_tcp_listen = 127.0.0.1:${this.#port}
[realms]
 ${REALM} = {
  database_name = ${join(this.dir, 'principal')}
  key_stash_file = ${join(this.dir, 'stash')}
  acl_file = ${join(this.dir, 'acl')}
  max_life = 1d
 }
`;
  }

  /** Starts krb5kdc and waits until it answers. */
  async up(): Promise<void> {
    this.#process = spawn('krb5kdc', ['-n'], { env: { ...process.env, ...this.#adminEnv }, stdio: 'ignore' });
    await untilReady('krb5kdc', () => accepts(this.#port));
  }

  /** Stops krb5kdc; the realm stays. */
  async down(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    await killed(child);
  }

  /** Stops the KDC and removes everything. */
  async stop(): Promise<void> {
    await this.down();
    removeFolder(this.dir);
  }

  async #kadmin(...command: string[]): Promise<void> {
    await run('kadmin.local', ['-r', REALM, ...command], { env: this.#adminEnv });
  }

  /** A principal with a password. */
  async addUser(name: string, password = 'password'): Promise<void> {
    await this.#kadmin('addprinc', '-pw', password, name);
  }

  /** A principal with random keys. */
  async addService(name: string): Promise<void> {
    await this.#kadmin('addprinc', '-randkey', name);
  }

  /** Writes the principal's present keys into a keytab, which is replaced as a whole. */
  async exportKeys(name: string, keytab: string): Promise<void> {
    const fresh = `${keytab}.new`;
    await this.addKeys(name, fresh);
    await rename(fresh, keytab);
  }

  /** Adds the principal's present keys to a keytab. */
  async addKeys(name: string, keytab: string): Promise<void> {
    await this.#kadmin('ktadd', '-norandkey', '-k', keytab, name);
  }

  /** Gives principals the key of one password, as services of one account have it. */
  async shareKey(...names: readonly string[]): Promise<void> {
    for (const name of names)
      await this.#kadmin('cpw', '-e', 'aes256-cts-hmac-sha1-96:onlyrealm', '-pw', 'shared', name);
  }

  /** Gives the principal new keys; tickets for the old ones stay in circulation. */
  async rotateKeys(name: string): Promise<void> {
    await this.#kadmin('cpw', '-randkey', name);
  }

  /**
   * Logs a user in with a separate credential cache.
   *
   * @returns the cache's path, for KRB5CCNAME
   */
  async login(name: string, options: { password?: string; lifetime?: string; args?: string[] } = {}): Promise<string> {
    const cache = join(this.dir, `cc-${(this.#caches += 1)}`);
    const lifetime = options.lifetime === undefined ? [] : ['-l', options.lifetime];
    await run('kinit', [...lifetime, ...(options.args ?? []), name], {
      env: { ...this.env, KRB5CCNAME: `FILE:${cache}` },
      input: `${options.password ?? 'password'}\n`,
    });
    return cache;
  }

  /**
   * A copy of a credential cache whose owner's clock is `seconds` ahead: the cache's header holds the offset that the
   * client's library adds to the time of day (MIT's ccache file format, header field 1).
   */
  async withClockOffset(cache: string, seconds: number): Promise<string> {
    const copy = `${cache}${seconds < 0 ? '' : '+'}${seconds}`;
    await copyFile(cache, copy);
    const file = await open(copy, 'r+');
    const offset = Buffer.alloc(4);
    offset.writeInt32BE(seconds);
    await file.write(offset, 0, 4, 8);
    await file.close();
    return copy;
  }
}
