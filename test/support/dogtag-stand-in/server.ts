/**
 * A stand-in for Dogtag 10.10's REST interface with its oddities: rejected requests answered 200, a bad CSR 500, errors
 * of the container in HTML or empty, nonces bound to a session, requests accepted and lost while the directory is down.
 * For speed and for faults; what it says of Dogtag is held against the real one by the contract cases.
 *
 * Longer than other files: the routes of one interface, with what is odd about each.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { certsOnly } from '../../../src/pki/cms/cms.ts';
import {
  agentCertificate,
  badRequest,
  error,
  fieldOf,
  html,
  isAgent,
  json,
  JSON_TYPE,
  readEnrollment,
  REASONS,
  review,
  template,
  useNonce,
  type Answered,
} from './answers.ts';
import { CmcServlet } from './cmc.ts';
import { pause } from '../until.ts';
import { serve, Steps } from '../upstream-steps.ts';
import { InvalidRequest, newNonce, PROFILES, type StandInState, type StoredRequest } from './state.ts';

/** What goes wrong, until it is taken away again. */
export interface Faults {
  /** The web application is gone: HTML 404 for everything. */
  undeployed?: boolean;
  /** Every answer is a proxy's page with status 200. */
  html?: boolean;
  directoryDown?: boolean;
  /** The agent may not read profiles. */
  profilesForbidden?: boolean;
  /** Milliseconds before every answer. */
  delay?: number;
  /** A submission is carried out, and its connection cut in place of an answer. */
  cutAfterSubmission?: boolean;
  /** A submission's connection is cut before anything is done. */
  cutBeforeSubmission?: boolean;
  /** The answer never ends. */
  endless?: boolean;
}

export interface StandInTls {
  readonly cert: string;
  readonly key: string;
  /** Of the CA behind the agent's certificate. */
  readonly ca: string;
}

interface Session {
  /** Whether the agent has logged in; a nonce needs no login. */
  loggedIn: boolean;
  readonly nonces: Map<string, string>;
}

export class StandInServer {
  readonly state: StandInState;
  faults: Faults = {};
  /** Faults at single calls. */
  steps = new Steps();
  /** `METHOD /path` of every request, in order. */
  readonly seen: string[] = [];
  /** The body of every request. */
  readonly bodies: string[] = [];
  /** The most CMC requests that were under way at the same time. */
  mostCmcAtOnce = 0;
  readonly #server: Server;
  readonly #cmc: CmcServlet;
  #cmcUnderWay = 0;
  #port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Map<string, Session>();

  constructor(state: StandInState, tls: StandInTls) {
    this.state = state;
    this.#cmc = new CmcServlet(state);
    this.#server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, (request, response) => {
      // The client is gone, or gets no answer.
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('secureConnection', (socket) => {
      // An untrusted certificate fails the handshake; none is fine.
      if (socket.getPeerX509Certificate() !== undefined && !socket.authorized) socket.destroy();
    });
  }

  async listen(port = 0): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    this.#port = address.port;
  }

  /** Also while it is closed: what is under way then names it, and it comes back there. */
  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `https://localhost:${this.port}`;
  }

  /** How often a request that begins with this was made. */
  count(prefix: string): number {
    return this.seen.filter((line) => line.startsWith(prefix)).length;
  }

  /** Cuts every connection and refuses new ones. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // Includes connections in the handshake: HTTP does not know them yet, and the server would wait for them forever.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    this.seen.push(`${method} ${url}`);
    const cmc = url.startsWith('/ca/ee/ca/profileSubmitCMCFull');
    if (cmc) {
      this.mostCmcAtOnce = Math.max(this.mostCmcAtOnce, ++this.#cmcUnderWay);
      response.once('close', () => this.#cmcUnderWay--);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    const { delay = 0, cutAfterSubmission, cutBeforeSubmission, endless } = this.faults;
    if (delay > 0) await pause(delay);
    const submission = method === 'POST' && /\/(certrequests|keyrequests|profileSubmitCMCFull\S*)$/.test(url);
    if (submission && cutBeforeSubmission === true) return void request.socket.destroy();
    const bytes = Buffer.concat(chunks);
    const body = bytes.toString('utf8');
    this.bodies.push(body);
    const name = `${method} ${url.replace(/\?.*|\/(0x)?\d+\b/g, '')}`;
    await serve(this.steps, name, response, async () => {
      const {
        status,
        type,
        cookie,
        body: content,
      } = await (cmc ? this.#cmcAnswer(request, bytes) : this.#answer(request, body));
      if (submission && cutAfterSubmission === true) request.socket.destroy();
      return {
        status,
        headers: {
          ...(type === undefined ? {} : { 'Content-Type': type }),
          ...(cookie === undefined ? {} : { 'Set-Cookie': `JSESSIONID=${cookie}; Path=/ca; Secure; HttpOnly` }),
        },
        ...(content === undefined ? {} : { body: content }),
        isEndless: endless === true,
      };
    });
  }

  async #cmcAnswer(request: IncomingMessage, body: Buffer): Promise<Answered> {
    if (this.faults.html === true) return html(200);
    if (this.faults.undeployed === true) return html(404);
    if (request.headers['content-length'] === undefined) return html(200);
    const profile =
      new URL(request.url ?? '', 'https://localhost').searchParams.get('profileId') ?? 'caFullCMCUserCert';
    const agent = this.faults.directoryDown === true ? undefined : agentCertificate(request);
    return { status: 200, type: 'application/pkcs7-mime', body: await this.#cmc.answer(body, profile, agent) };
  }

  async #answer(request: IncomingMessage, body: string): Promise<Answered> {
    if (this.faults.html === true) return html(200);
    if (this.faults.undeployed === true) return html(404);
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '', 'https://localhost');
    const path = url.pathname.split('/').slice(3);
    const agent = isAgent(request) && this.faults.directoryDown !== true;
    if (headers.accept !== JSON_TYPE) return { status: 200, type: 'application/xml', body: '<xml/>' };
    if (/^\/(ca|kra)\/rest\/account\/login$/.test(url.pathname))
      return method === 'GET'
        ? agent
          ? this.#withSession(request, (session) => {
              session.loggedIn = true;
              return json(200, { id: 'caadmin', Roles: { Role: [] } });
            })
          : html(401)
        : { status: 405 };
    if (url.pathname.startsWith('/kra/rest/'))
      return this.state.kra.answer(method, url.pathname.slice('/kra/rest/'.length), body, agent, this.state.issuer);
    if (url.pathname === '/ca/rest/account/logout') return { status: 204 };
    if (url.pathname === '/ca/rest/config/cert/signing') return json(200, this.#signingCertificate());
    if (path[0] === 'agent')
      return agent
        ? this.#withSession(request, (session) => this.#agent(method, path.slice(1), url, body, session))
        : html(401);
    if (path[0] === 'profiles')
      return this.#withSession(request, ({ loggedIn }) => this.#profile(path[1] ?? '', agent && loggedIn));
    if (path[0] === 'certs') return this.#certs(method, path[1] ?? '', body);
    if (path[0] !== 'certrequests') return html(404);
    if (path[1] === 'profiles') return template(path[2] ?? '');
    if (method === 'POST') return this.#submit(body, agent);
    return this.#requestStatus(path[1] ?? '');
  }

  #profile(id: string, loggedIn: boolean): Answered {
    if (!loggedIn) return error(403, 'base.ForbiddenException', 'No user principal provided.');
    if (this.faults.profilesForbidden === true)
      return error(
        403,
        'base.ForbiddenException',
        'Authorization failed on resource: certServer.profile.configuration',
      );
    const profile = PROFILES[id];
    if (profile === undefined) return error(404, 'profile.ProfileNotFoundException', `Profile ID ${id} not found`);
    return json(200, {
      id,
      classId: 'caEnrollImpl',
      enabled: true,
      authenticatorId: profile.auto ? 'AgentCertAuth' : null,
    });
  }

  async #withSession(
    request: IncomingMessage,
    work: (session: Session) => Answered | Promise<Answered>,
  ): Promise<Answered> {
    const known = /JSESSIONID=([0-9A-F]+)/.exec(request.headers.cookie ?? '')?.[1];
    const session = known === undefined ? undefined : this.#sessions.get(known);
    if (session !== undefined) return work(session);
    const cookie = randomBytes(16).toString('hex').toUpperCase();
    const made: Session = { nonces: new Map(), loggedIn: false };
    this.#sessions.set(cookie, made);
    return { ...(await work(made)), cookie };
  }

  /** Every session ends, as after a restart of Tomcat. */
  forgetSessions(): void {
    this.#sessions.clear();
  }

  async #submit(body: string, agent: boolean): Promise<Answered> {
    const { profile, text, requestor } = readEnrollment(body);
    const rules = PROFILES[profile];
    if (rules === undefined) return badRequest(`Bad request data: Profile ${profile} Not Found`);
    if (rules.auto && !agent)
      return error(401, 'base.UnauthorizedException', 'Authentication failed: Invalid Credential.');
    try {
      const stored = await this.state.submit(profile, text, requestor, this.faults.directoryDown !== true);
      return json(200, { total: 1, entries: [this.#info(stored)], Link: [] });
    } catch (cause) {
      if (!(cause instanceof InvalidRequest)) throw cause;
      return error(500, 'base.PKIException', 'Unable to create enrollment request: Invalid Request');
    }
  }

  #requestStatus(id: string): Answered {
    if (!/^\d+$/.test(id)) return { status: 404 };
    const request = this.faults.directoryDown === true ? undefined : this.state.requests.get(Number(id));
    if (request === undefined)
      return error(404, 'request.RequestNotFoundException', `Request ID 0x${Number(id).toString(16)} not found`);
    return json(200, this.#info(request));
  }

  #info({ id, status, certId, message }: StoredRequest): object {
    return {
      requestType: 'enrollment',
      requestStatus: status,
      requestURL: `${this.url}/ca/rest/certrequests/${id}`,
      realm: null,
      certId: certId === null ? null : `0x${certId.toString(16)}`,
      certURL: certId === null ? null : `${this.url}/ca/rest/certs/${certId}`,
      certRequestType: 'pkcs10',
      operationResult: 'success',
      errorMessage: message,
    };
  }

  #certs(method: string, id: string, body: string): Answered {
    if (this.faults.directoryDown === true) return error(500, 'base.PKIException', 'Failed to connect LDAP server');
    if (method === 'POST' && id === 'search') return this.#search(body);
    const serial = Number(id);
    const found = Number.isNaN(serial) ? undefined : this.state.certificates.get(serial);
    if (found === undefined) return error(404, 'cert.CertNotFoundException', `Certificate ID ${id} not found`);
    return json(200, { ...this.#certificate(serial, found.der, found.revoked), Nonce: null });
  }

  #search(body: string): Answered {
    const window: unknown = JSON.parse(body);
    const [from, to] = ['issuedOnFrom', 'issuedOnTo'].map((field) => Number(fieldOf(window, field) ?? Number.NaN));
    const entries = [...this.state.certificates].flatMap(([serial, { issuedOn, subject }]) =>
      issuedOn < (from ?? 0) || issuedOn > (to ?? Infinity) || !isNamed(subject, fieldOf(window, 'commonName'))
        ? []
        : { id: `0x${serial.toString(16)}`, SubjectDN: subject },
    );
    return json(200, { total: entries.length, entries, Link: [] });
  }

  #certificate(serial: number, der: Buffer, revoked: string | null): object {
    return {
      id: `0x${serial.toString(16)}`,
      PrettyPrint: 'Certificate:\n  "Nonce":12345',
      Encoded: encodePem('CERTIFICATE', der).replace(/\n(?=[^-\n]+\n)/g, '\r\n'),
      Status: revoked === null ? 'VALID' : 'REVOKED',
      RevocationReason: revoked,
    };
  }

  #signingCertificate(): object {
    const { der } = this.state.issuer;
    return { ...this.#certificate(1, der, null), PKCS7CertChain: certsOnly([der]).toString('base64') };
  }

  async #agent(
    method: string,
    path: readonly string[],
    url: URL,
    body: string,
    { nonces }: Session,
  ): Promise<Answered> {
    const [kind, id = '', action] = path;
    if (kind === 'certrequests' && id === '') return this.#list(url.searchParams.get('requestState'));
    if (kind === 'certrequests') return this.#decide(method, Number(id), action, body, nonces);
    const serial = Number(id);
    const found = this.state.certificates.get(serial);
    if (found === undefined) return error(404, 'cert.CertNotFoundException', `Certificate ID ${id} not found`);
    if (method === 'GET') {
      const nonce = newNonce();
      nonces.set(`cert-revoke ${serial}`, nonce);
      // A bare int64, as on the wire.
      const page = JSON.stringify(this.#certificate(serial, found.der, found.revoked));
      return { status: 200, type: JSON_TYPE, body: `${page.slice(0, -1)},"Nonce":${nonce}}` };
    }
    const order: unknown = JSON.parse(body);
    const refused = useNonce(nonces, `cert-revoke ${serial}`, fieldOf(order, 'Nonce'));
    if (refused !== undefined) return refused;
    const reason = fieldOf(order, 'Reason');
    if (typeof reason !== 'string' || !REASONS.includes(reason)) return html(500);
    if (found.revoked !== null) return badRequest(`certificate #${serial} has already been revoked`);
    found.revoked = reason;
    return json(200, {
      requestType: 'revocation',
      requestStatus: 'complete',
      certId: `0x${serial.toString(16)}`,
      operationResult: 'success',
      errorMessage: null,
    });
  }

  #list(status: string | null): Answered {
    const entries = [...this.state.requests.values()].filter((request) => request.status === status);
    return json(200, { total: entries.length, entries: entries.map((entry) => this.#info(entry)), Link: [] });
  }

  async #decide(
    method: string,
    id: number,
    action: string | undefined,
    body: string,
    nonces: Map<string, string>,
  ): Promise<Answered> {
    const request = this.state.requests.get(id);
    if (request === undefined)
      return error(404, 'request.RequestNotFoundException', `Request ID 0x${id.toString(16)} not found`);
    if (method === 'GET') {
      const nonce = newNonce();
      nonces.set(`cert-request ${id}`, nonce);
      return json(200, review(request, nonce));
    }
    const refused = useNonce(nonces, `cert-request ${id}`, fieldOf(JSON.parse(body), 'nonce'));
    if (refused !== undefined) return refused;
    if (request.status !== 'pending') return badRequest('Bad request data: Request Not In Pending State');
    if (action === 'approve') await this.state.approve(request);
    else request.status = action === 'reject' ? 'rejected' : 'canceled';
    return { status: 204, type: JSON_TYPE };
  }
}

const isNamed = (subject: string, commonName: unknown): boolean =>
  typeof commonName !== 'string' || subject.split(',').includes(`CN=${commonName}`);
