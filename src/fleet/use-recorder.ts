/**
 * Remembers what requests show of certificates, and writes it in the background (docs/guides/fleet.md): the first use of a certificate soon,
 * later ones rarely. A request costs two look-ups in memory.
 */
import type { PresentedCertificates } from '../auth/mtls/presented-certificates.ts';
import { isUnauthenticated } from '../errors.ts';
import { fingerprintsOf } from '../pki/x509/certificate.ts';
import type { Rejection } from '../store/holder-store.ts';
import type {
  CertificateUse,
  IssuingRequest,
  RenewalInfoRequest,
  UsedConnection,
  UseStore,
} from '../store/use-store.ts';

/** A request on the EST listener, after its answer. */
export interface SeenRequest extends UsedConnection {
  readonly certificates: PresentedCertificates | undefined;
  /** When it began. */
  readonly at: number;
  readonly connected_at: number;
  /** Whether the operation has authenticated the certificate. */
  readonly authenticated: boolean;
  /** The answer of `cacerts`, which is the same object for equal answers. */
  readonly chain?: Buffer | undefined;
  /** Serial number of the certificate in the answer. */
  readonly issued?: string | undefined;
  /** The 401 that the certificate got. */
  readonly rejected?: Pick<Rejection, 'code' | 'message'> | undefined;
}

export interface RejectedCertificate extends Rejection {
  readonly certificate: { readonly serial: string; readonly fingerprints: readonly string[] };
}

interface UseRecorderOptions {
  readonly store: Pick<UseStore, 'recordUses'>;
  readonly reject: (rejections: readonly RejectedCertificate[]) => Promise<void>;
  /** Whether a certificate that no operation has authenticated is valid. */
  readonly isValid: (certificates: PresentedCertificates) => Promise<boolean>;
  readonly now: () => number;
}

interface Pending {
  seen: SeenRequest;
  readonly first: number;
  authenticated: boolean;
  readonly chains: Set<Buffer>;
}

interface Written {
  readonly at: number;
  readonly chains: ReadonlySet<Buffer>;
}

/** Milliseconds between writes of the use of a certificate, and of the requests for its renewal information. */
const [AGAIN, INFO_AGAIN] = [600_000, 3_600_000];
/** Certificates that are remembered. */
const MAX_KNOWN = 100_000;
/** Certificates per write. */
const AT_ONCE = 100;

export class UseRecorder {
  readonly #options: UseRecorderOptions;
  /** By fingerprint. */
  readonly #pending = new Map<string, Pending>();
  readonly #written = new Map<string, Written>();
  readonly #informed = new Map<string, number>();
  #issued: IssuingRequest[] = [];
  #renewalInfo: RenewalInfoRequest[] = [];
  #rejected: { readonly certificates: PresentedCertificates; readonly rejection: Rejection }[] = [];
  #flushing: Promise<void> = Promise.resolve();

  constructor(options: UseRecorderOptions) {
    this.#options = options;
  }

  saw(seen: SeenRequest): void {
    const { certificates, issued, rejected, tls_version, names_label, at } = seen;
    if (issued !== undefined && this.#issued.length < MAX_KNOWN)
      this.#issued.push({ serial: issued, tls_version, names_label });
    if (certificates === undefined) return;
    if (rejected !== undefined) {
      if (this.#rejected.length < MAX_KNOWN) this.#rejected.push({ certificates, rejection: { ...rejected, at } });
      return;
    }
    const { fingerprint } = certificates;
    const pending = this.#pending.get(fingerprint);
    if (pending !== undefined) {
      pending.seen = seen;
      pending.authenticated ||= seen.authenticated;
      if (seen.chain !== undefined) pending.chains.add(seen.chain);
    } else if (this.#pending.size < MAX_KNOWN) {
      const chains = new Set(seen.chain === undefined ? [] : [seen.chain]);
      this.#pending.set(fingerprint, { seen, first: at, authenticated: seen.authenticated, chains });
    }
    if (issued !== undefined) this.#written.delete(fingerprint);
  }

  sawRenewalInfo(ca: string, serial: string): void {
    const at = this.#options.now();
    const key = `${ca} ${serial}`;
    if (at - (this.#informed.get(key) ?? -Infinity) < INFO_AGAIN) return;
    remember(this.#informed, key, at);
    this.#renewalInfo.push({ ca, serial, at });
  }

  /**
   * Writes what is due.
   * @param all also uses whose previous one was written a short time ago
   * @throws what the store throws; the rest is written later
   */
  flush(all = false): Promise<void> {
    return (this.#flushing = this.#flushing.catch(() => undefined).then(() => this.#flush(all)));
  }

  async #flush(all: boolean): Promise<void> {
    const { store, reject, now } = this.#options;
    const rejected = this.#rejected.splice(0);
    const rejections = rejected.flatMap(({ certificates, rejection }) => {
      const certificate = namesOf(certificates);
      return certificate === undefined ? [] : [{ ...rejection, certificate }];
    });
    if (rejections.length > 0)
      await reject(rejections).catch((error: unknown) => {
        this.#rejected.unshift(...rejected);
        throw error;
      });
    const time = now();
    const due = [...this.#pending].filter(([fingerprint, { chains }]) => all || this.#isDue(fingerprint, chains, time));
    const [issued, renewalInfo] = [this.#issued, this.#renewalInfo];
    if (due.length + issued.length + renewalInfo.length === 0) return;
    [this.#issued, this.#renewalInfo] = [[], []];
    const uses: CertificateUse[] = [];
    for (const [fingerprint, pending] of due) {
      this.#pending.delete(fingerprint);
      const use = await this.#use(pending);
      if (use === undefined) continue;
      uses.push(use);
      // The next use after a renewal shows whether the client installed the new certificate.
      if (pending.seen.issued !== undefined) continue;
      const chains = new Set([...(this.#written.get(fingerprint)?.chains ?? []), ...pending.chains]);
      remember(this.#written, fingerprint, { at: time, chains });
    }
    try {
      await store.recordUses({ uses: [], issued, renewalInfo });
      for (let n = 0; n < uses.length; n += AT_ONCE)
        await store.recordUses({ uses: uses.slice(n, n + AT_ONCE), issued: [], renewalInfo: [] });
    } catch (error) {
      this.#issued.unshift(...issued);
      this.#renewalInfo.unshift(...renewalInfo);
      for (const [fingerprint, pending] of due) {
        this.#written.delete(fingerprint);
        if (!this.#pending.has(fingerprint)) this.#pending.set(fingerprint, pending);
      }
      throw error;
    }
  }

  #isDue(fingerprint: string, chains: ReadonlySet<Buffer>, time: number): boolean {
    const written = this.#written.get(fingerprint);
    return (
      written === undefined || time - written.at >= AGAIN || [...chains].some((chain) => !written.chains.has(chain))
    );
  }

  async #use({ seen, first, authenticated, chains }: Pending): Promise<CertificateUse | undefined> {
    const { certificates, at, connected_at, tls_version, names_label } = seen;
    const names = certificates && namesOf(certificates);
    if (certificates === undefined || names === undefined) return undefined;
    if (!authenticated && !(await this.#options.isValid(certificates))) return undefined;
    const times = { first_used_at: first, last_used_at: at, connected_at };
    return { ...names, ...times, tls_version, names_label, chains: [...chains] };
  }
}

/** undefined: it is malformed or too large. */
function namesOf(certificates: PresentedCertificates): RejectedCertificate['certificate'] | undefined {
  try {
    const leaf = certificates.leaf();
    return { serial: leaf.serialNumber, fingerprints: fingerprintsOf(leaf) };
  } catch (error) {
    if (isUnauthenticated(error)) return undefined;
    throw error;
  }
}

/** The oldest is forgotten. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MAX_KNOWN) break;
    map.delete(oldest);
  }
}
