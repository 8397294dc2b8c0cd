/**
 * The real Dogtag that `scripts/dogtag up` left running: where it is, a session of its agent, and its services stopped
 * and started. Test files that use it take turns, also those of other runs on this machine.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { run, runText } from './command.ts';
import { DOGTAG_FOLDER, readDescription, type DogtagDescription } from './dogtag-folder.ts';
import { ASKED_PROFILE, AUTO, QUEUE, type DogtagProfile } from './dogtag-profiles.ts';
import type { DogtagSettings } from './dogtag-stand-in/index.ts';
import { caSection, section } from './estuary.ts';
import { call, type Answer } from './https.ts';
import { ROOT } from './root.ts';
import { pause } from './until.ts';

const SCRIPT = join(ROOT, 'scripts', 'dogtag');

/** In the kernel's abstract namespace, where a process holds a name for as long as it lives, and no longer. */
const TURN = `\0estuary-dogtag-${createHash('sha256').update(DOGTAG_FOLDER).digest('hex').slice(0, 32)}`;

async function takeTurn(): Promise<Server> {
  for (;;) {
    const server = createServer();
    const taken = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
      );
      server.listen(TURN, () => resolve(true));
    });
    if (taken) return server;
    await pause(250);
  }
}

/** Milliseconds that {@link Dogtag.open} may take: other test files may have to end before it is this one's turn. */
export const OPEN_TIMEOUT = 1_200_000;

export type Service = 'tomcat' | 'directory';
export type AgentDecision = 'approve' | 'reject' | 'cancel';

export class Dogtag {
  /** `https://localhost:…`, this machine's end of the relay. */
  readonly url: string;
  readonly port: number;
  /** PEM of the CA's certificate, which also signed Tomcat's. */
  readonly ca: string;
  readonly #files: DogtagDescription;
  readonly #agent: { readonly cert: string; readonly key: string };
  readonly #turn: Server;

  private constructor(files: DogtagDescription, turn: Server) {
    this.#files = files;
    this.url = files.url;
    this.port = Number(new URL(files.url).port);
    this.ca = readFileSync(files.ca, 'latin1');
    this.#agent = {
      cert: readFileSync(files.agent_certificate, 'latin1'),
      key: readFileSync(files.agent_key, 'latin1'),
    };
    this.#turn = turn;
  }

  /** Waits for its turn, sees that all services run, and makes the tests' profiles where they are not there yet. */
  static async open(): Promise<Dogtag> {
    const turn = await takeTurn();
    try {
      await run(SCRIPT, ['start'], { timeout: 280_000 });
      const dogtag = new Dogtag(readDescription(), turn);
      for (const profile of [AUTO, QUEUE]) await dogtag.#makeProfile(profile);
      return dogtag;
    } catch (error) {
      turn.close();
      throw error;
    }
  }

  /** Gives its turn away. */
  async close(): Promise<void> {
    await new Promise((resolve) => this.#turn.close(resolve));
  }

  /** `[ca.dogtag]` for this one and the profile of this name. */
  settings(profile: string): DogtagSettings {
    return {
      urls: [this.url],
      trust_anchors: this.#files.ca,
      client_certificate: this.#files.agent_certificate,
      client_key: this.#files.agent_key,
      profile,
      cmc_profile: 'caFullCMCUserCert',
      kra_urls: [],
      timeout: 30,
      check_interval: 10,
      lost_after: 600,
    };
  }

  /** Makes the first CA of an Estuary this one, and its certificates acceptable for mTLS. */
  configure(config: TomlTable, dir: string, profile: DogtagProfile, more: Partial<DogtagSettings> = {}): void {
    const ca = caSection(config);
    delete ca['file'];
    delete ca['certificate'];
    delete ca['chain'];
    ca['driver'] = 'dogtag';
    const { urls, kra_urls, ...rest } = { ...this.settings(profile.id), ...more };
    ca['dogtag'] = { ...rest, urls: [...urls], kra_urls: [...kra_urls] };
    Object.assign(section(ca, 'profile'), ASKED_PROFILE);
    const anchors = join(dir, 'client-anchors.pem');
    writeFileSync(anchors, `${readFileSync(join(dir, 'ca/root.pem'), 'latin1')}\n${this.ca}`);
    section(config, 'tls', 'client_auth')['trust_anchors'] = anchors;
  }

  /** One request as the agent, whose session the cookie (if any) is. */
  request(
    method: string,
    path: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    return call({
      port: this.port,
      path,
      method,
      headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
      tls: { ca: this.ca, ...this.#agent },
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
  }

  /** Runs `work` with the headers of one login on a subsystem. */
  async session<T>(subsystem: 'ca' | 'kra', work: (headers: { Cookie: string }) => Promise<T>): Promise<T> {
    const login = await this.request('GET', `/${subsystem}/rest/account/login`);
    const cookie = login.headers['set-cookie']?.[0]?.split(';')[0];
    if (login.status !== 200 || cookie === undefined) throw new Error(`login: ${login.status} ${login.text}`);
    try {
      return await work({ Cookie: cookie });
    } finally {
      await this.request('GET', `/${subsystem}/rest/account/logout`, undefined, { Cookie: cookie });
    }
  }

  /** An agent's decision about a queued request: the review that the session got goes back whole, nonce included. */
  async decide(decision: AgentDecision, requestId: string): Promise<void> {
    const path = `/ca/rest/agent/certrequests/${requestId}`;
    await this.session('ca', async (headers) => {
      const review = await this.request('GET', path, undefined, headers);
      if (review.status !== 200) throw new Error(`review ${requestId}: ${review.status} ${review.text}`);
      const answer = await this.request('POST', `${path}/${decision}`, review.text, headers);
      if (answer.status !== 204) throw new Error(`${decision} ${requestId}: ${answer.status} ${answer.text}`);
    });
  }

  /** Ids of the queued requests with this text in their subject, oldest first. */
  async pending(subject: string): Promise<string[]> {
    const found: string[] = [];
    for (const id of await this.#requests('pending')) {
      const review = await this.session('ca', (headers) =>
        this.request('GET', `/ca/rest/agent/certrequests/${id}`, undefined, headers),
      );
      if (review.text.includes(subject)) found.push(id);
    }
    return found;
  }

  async #requests(status: string): Promise<string[]> {
    const path = `/ca/rest/agent/certrequests?requestState=${status}&pageSize=1000&maxResults=1000`;
    const { text } = await this.session('ca', (headers) => this.request('GET', path, undefined, headers));
    return [...text.matchAll(/"requestURL":"[^"]*\/certrequests\/(\w+)"/g)].map((match) => match[1] ?? '');
  }

  /** Serial numbers, lower-case hex, of the certificates whose common name is this. */
  async certificatesOf(cn: string): Promise<string[]> {
    const search = JSON.stringify({ commonName: cn, subjectInUse: true, matchExactly: true });
    const { text } = await this.request('POST', '/ca/rest/certs/search?size=1000', search);
    return [...text.matchAll(/"id":"0x([0-9a-f]+)"/g)].map(([, hex = '']) => (hex.length % 2 === 0 ? hex : `0${hex}`));
  }

  /** Status of one certificate, by its serial in hex: `VALID`, `REVOKED` … */
  async certificateStatus(serial: string): Promise<string> {
    const { text } = await this.request('GET', `/ca/rest/certs/0x${serial}`);
    return /"Status":"(\w+)"/.exec(text)?.[1] ?? text;
  }

  /** Where its files are, as seen from outside. */
  get tree(): string {
    return this.#files.tree;
  }

  /** Runs a command inside. */
  exec(...command: readonly string[]): Promise<string> {
    return runText(SCRIPT, ['exec', ...command], { timeout: 120_000 });
  }

  stop(service: Service, how: 'stop' | 'kill' = 'stop'): Promise<string> {
    return runText(SCRIPT, [service, how], { timeout: 120_000 });
  }

  /** Starts it again; Tomcat answers when this resolves. */
  start(service: Service): Promise<string> {
    return runText(SCRIPT, [service, 'start'], { timeout: 280_000 });
  }

  async #makeProfile({ id, raw }: DogtagProfile): Promise<void> {
    const template = await this.request('GET', `/ca/rest/certrequests/profiles/${id}`);
    if (template.status === 200) return;
    await this.session('ca', async (headers) => {
      const octets = { ...headers, Accept: '*/*', 'Content-Type': 'application/octet-stream' };
      const made = await this.request('POST', '/ca/rest/profiles/raw', raw, octets);
      if (made.status !== 201) throw new Error(`profile ${id}: ${made.status} ${made.text}`);
      const enabled = await this.request('POST', `/ca/rest/profiles/${id}?action=enable`, undefined, headers);
      if (enabled.status !== 204) throw new Error(`profile ${id}: ${enabled.status} ${enabled.text}`);
    });
  }
}
