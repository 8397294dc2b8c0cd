/** A stand-in for Dogtag with its certificates as files, and as many replicas as a test wants. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import {
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../certificates.ts';
import { caSection, section } from '../estuary.ts';
import { ASKED_PROFILE } from '../dogtag-profiles.ts';
import { call, type Answer, type ClientTls } from '../https.ts';
import { pkcs8Pem } from '../keys.ts';
import { freePort } from '../ports.ts';
import { StandInServer } from './server.ts';
import { StandInState } from './state.ts';
import { removeFolder } from '../folders.ts';

export { ASKED_PROFILE } from '../dogtag-profiles.ts';
export { StandInServer } from './server.ts';
export type { StoredRequest } from './state.ts';

export class DogtagStandIn {
  readonly state: StandInState;
  readonly replicas: readonly StandInServer[];
  readonly issuer: Issuer;
  readonly #dir: string;
  readonly #agentTls: ClientTls;

  private constructor(dir: string, agentTls: ClientTls, state: StandInState, replicas: readonly StandInServer[]) {
    this.#dir = dir;
    this.#agentTls = agentTls;
    this.state = state;
    this.issuer = state.issuer;
    this.replicas = replicas;
  }

  /** @param replicas how many, all with the same directory behind them */
  static async start(replicas = 1): Promise<DogtagStandIn> {
    const dir = mkdtempSync(join(tmpdir(), 'estuary-dogtag-stand-in-'));
    const issuer = await makeCa('CN=CA Signing Certificate,OU=pki-tomcat,O=EXAMPLE', { slot: 'dogtag-ca' });
    const server = await makeCertificate({
      subject: 'CN=localhost',
      issuer,
      extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
    });
    const agent = await makeClient('CN=PKI Administrator,O=EXAMPLE', issuer);
    const write = (name: string, text: string): void => writeFileSync(join(dir, name), text, { mode: 0o600 });
    const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
    write('ca.pem', pem(issuer));
    write('agent.pem', pem(agent));
    write('agent.key', pkcs8Pem(agent.keys));
    const state = new StandInState(issuer);
    const tls = { cert: pem(server), key: pkcs8Pem(server.keys), ca: pem(issuer) };
    const servers = Array.from({ length: replicas }, () => new StandInServer(state, tls));
    for (const one of servers) await one.listen(await freePort());
    return new DogtagStandIn(dir, { ca: pem(issuer), cert: pem(agent), key: pkcs8Pem(agent.keys) }, state, servers);
  }

  /** The first replica. */
  get server(): StandInServer {
    const [first] = this.replicas;
    if (first === undefined) throw new Error('a stand-in without replicas');
    return first;
  }

  /** `[ca.dogtag]` for this CA. */
  settings(more: Partial<DogtagSettings> = {}): DogtagSettings {
    return {
      urls: this.replicas.map(({ url }) => url),
      trust_anchors: join(this.#dir, 'ca.pem'),
      client_certificate: join(this.#dir, 'agent.pem'),
      client_key: join(this.#dir, 'agent.key'),
      profile: 'estuaryAuto',
      cmc_profile: 'caFullCMCUserCert',
      kra_urls: [],
      timeout: 20,
      check_interval: 1,
      lost_after: 600,
      ...more,
    };
  }

  /** A request of the agent's. */
  request(
    method: string,
    path: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    return call({
      port: this.server.port,
      path,
      method,
      headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
      tls: this.#agentTls,
      ...(body === undefined ? {} : { body }),
    });
  }

  /** An agent's decision about a queued request. */
  async decide(decision: 'approve' | 'reject' | 'cancel', requestId: string): Promise<void> {
    const path = `/ca/rest/agent/certrequests/${requestId}`;
    const review = await this.request('GET', path);
    const cookie = review.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const answer = await this.request('POST', `${path}/${decision}`, review.text, { Cookie: cookie });
    if (answer.status !== 204) throw new Error(`${decision} ${requestId}: ${answer.status} ${answer.text}`);
  }

  /** Makes the first CA of an Estuary this one. */
  configure(config: TomlTable, more: TomlTable = {}): void {
    const ca = caSection(config);
    delete ca['file'];
    delete ca['certificate'];
    delete ca['chain'];
    ca['driver'] = 'dogtag';
    const { urls, kra_urls, ...settings } = this.settings();
    ca['dogtag'] = { ...settings, urls: [...urls], kra_urls: [...kra_urls], ...more };
    Object.assign(section(ca, 'profile'), ASKED_PROFILE);
  }

  /** Lets the clients of an Estuary authenticate with certificates of this CA, too. */
  trust(config: TomlTable, dir: string): void {
    const bundle = join(dir, 'client-anchors.pem');
    writeFileSync(
      bundle,
      [join(dir, 'ca/root.pem'), join(this.#dir, 'ca.pem')].map((path) => readFileSync(path, 'latin1')).join(''),
    );
    section(config, 'tls', 'client_auth')['trust_anchors'] = bundle;
  }

  async stop(): Promise<void> {
    for (const replica of this.replicas) await replica.close();
    removeFolder(this.#dir);
  }
}

export interface DogtagSettings {
  readonly urls: readonly string[];
  readonly trust_anchors: string;
  readonly client_certificate: string;
  readonly client_key: string;
  readonly profile: string;
  readonly cmc_profile: string;
  readonly input_class?: string;
  readonly kra_urls: readonly string[];
  readonly timeout: number;
  readonly check_interval: number;
  readonly lost_after: number;
}
