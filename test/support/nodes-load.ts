/** Clients of several nodes (nodes.ts), and their record of the results. */
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeKey, type TestKey } from './csr.ts';
import { certificatesOf } from './estuary.ts';
import type { Nodes } from './nodes.ts';
import { untilReady } from './spawned.ts';
import { pause } from './until.ts';

/** What a client knows of one token. */
export interface Enrolled {
  readonly cn: string;
  readonly token: string;
  readonly statuses: number[];
  /** Why there was no answer, each time. */
  readonly unanswered: string[];
  /** Serial numbers of the certificates that it was sent, hex. */
  readonly serials: Set<string>;
}

/** Clients that enroll over the balancer, each with one token after the other, until they are told to end; what is not answered is asked again. */
export interface LoadOptions {
  /** Administrators come over the balancer as well, and not to a node of their choice. */
  readonly adminOverBalancer?: boolean;
}

export class Load {
  readonly history: Enrolled[] = [];
  /** What approvals of one request by two administrators at once came to, and how the request ended. */
  readonly decisions: { readonly id: string; readonly statuses: readonly number[] }[] = [];
  /** What requests of administrators came to that were to make a token, and did not. */
  readonly failedTokens: string[] = [];
  readonly #nodes: Nodes;
  readonly #adminOverBalancer: boolean;
  readonly #keys: TestKey[] = [makeKey('P-256'), makeKey('P-256'), makeKey('P-256'), makeKey('P-256')];
  /** The longest time, ms, for which nobody was answered with a certificate since {@link start}. */
  longestPause = 0;
  #lastAnswer = 0;
  #certificates = 0;
  #count = 0;
  #stopping = false;
  #clients: Promise<void>[] = [];

  constructor(nodes: Nodes, { adminOverBalancer = false }: LoadOptions = {}) {
    this.#nodes = nodes;
    this.#adminOverBalancer = adminOverBalancer;
  }

  start(clients = 3): void {
    this.#stopping = false;
    this.longestPause = 0;
    this.#lastAnswer = performance.now();
    this.#clients = Array.from({ length: clients }, (_, n) => this.#client(n));
  }

  /** Waits for some more certificates. */
  async goesOn(count = 5): Promise<void> {
    const before = this.#certificates;
    await untilReady('who enrolls', () => Promise.resolve(this.#certificates >= before + count), 120_000).catch(
      (error: unknown) => {
        const last = this.history
          .slice(-4)
          .map(({ cn, statuses, unanswered }) => ({ cn, statuses, unanswered: unanswered.slice(-3) }));
        throw new Error(JSON.stringify({ last, failedTokens: this.failedTokens.slice(-4) }), { cause: error });
      },
    );
  }

  /** Waits until what was begun has its answer. */
  async end(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
  }

  #answered(): void {
    this.#certificates++;
    const now = performance.now();
    this.longestPause = Math.max(this.longestPause, now - this.#lastAnswer);
    this.#lastAnswer = now;
  }

  async #client(n: number): Promise<void> {
    const key = this.#keys[n];
    if (key === undefined) throw new Error('no key');
    while (!this.#stopping) {
      const cn = `device-${++this.#count}`;
      const token = await this.#token(cn);
      if (token === undefined) continue;
      const one: Enrolled = { cn, token, statuses: [], unanswered: [], serials: new Set() };
      this.history.push(one);
      await this.#enroll(one, key);
      // Once more: the same certificate, from whichever node.
      if (this.#count % 5 === 0) await this.#enroll(one, key);
    }
  }

  async #enroll(one: Enrolled, key: TestKey): Promise<void> {
    for (const end = performance.now() + 120_000; performance.now() < end;) {
      const answer = await this.#nodes
        .enroll(key, one.cn, one.token)
        .catch((error: unknown) => void one.unanswered.push(String(error)));
      if (answer !== undefined) one.statuses.push(answer.status);
      if (answer?.status === 200) this.#answered();
      if (answer === undefined || answer.status === 503) {
        await pause(200);
        continue;
      }
      if (answer.status === 200)
        for (const der of certificatesOf(answer)) one.serials.add(parseCertificate(der).serialNumber);
      return;
    }
    throw new Error(`${one.cn} got no certificate: ${one.statuses.join(' ')}`);
  }

  /** From any node that answers within seconds; over the balancer there is always one. */
  async #token(cn: string): Promise<string | undefined> {
    const node = this.#adminOverBalancer ? this.#nodes.balancer : this.#nodes.node(this.#count);
    let failure = 'no answer';
    const asked = this.#nodes
      .admin(node, 'POST', '/admin/otp', { client_id: cn })
      .catch((error: unknown) => void (failure = String(error)));
    const answer = await (this.#adminOverBalancer ? asked : Promise.race([asked, pause(3000)]));
    if (answer?.status !== 201) {
      this.failedTokens.push(answer === undefined ? failure : `${answer.status} ${answer.text}`);
      await pause(100);
      return undefined;
    }
    const { token } = JSON.parse(answer.text) as { token: string };
    return token;
  }

  /** Queues a request, and has two administrators decide it differently at two nodes. */
  async decide(): Promise<void> {
    const key = makeKey('P-256');
    const cn = `queued-${++this.#count}`;
    const token = await this.#token(cn);
    if (token === undefined) return;
    const queued = await this.#nodes.enroll(key, cn, token, 'lab');
    if (queued.status !== 202) throw new Error(`not queued: ${queued.status} ${queued.text}`);
    const [[id = ''] = []] = await this.#nodes.sql(`SELECT id FROM request WHERE subject = 'CN=${cn}'`);
    const answers = await Promise.all([
      this.#nodes.admin(this.#nodes.node(0), 'POST', `/admin/requests/${id}/approve`),
      this.#nodes.admin(this.#nodes.node(1), 'POST', `/admin/requests/${id}/reject`, { reason: 'no' }),
    ]);
    this.decisions.push({ id, statuses: answers.map(({ status }) => status).sort() });
  }
}
