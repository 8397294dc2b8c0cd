/**
 * Whether holders could renew under a configuration: the parts of the request path, created and not started, with a store that
 * is only read.
 */
import { MtlsPlugin, validatePresented, type ValidatedClientCertificate } from '../../auth/mtls/mtls.ts';
import type { ClientTrust } from '../../auth/mtls/client-trust.ts';
import { PresentedCertificates } from '../../auth/mtls/presented-certificates.ts';
import { createRouter } from '../../ca/create-router.ts';
import type { Ca, CaRouter } from '../../ca/router.ts';
import type { LoadedService } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { Authenticated, renewalContext } from '../../enrollment/authenticated.ts';
import { Enrollment } from '../../enrollment/enrollment.ts';
import { KeyGenerator } from '../../enrollment/key-generation.ts';
import { EstuaryError, unauthorized } from '../../errors.ts';
import { bitString, sequence } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { parseCsr, type Csr } from '../../pki/pkcs10/csr.ts';
import { extensionRequest, signCsr } from '../../pki/pkcs10/csr-builder.ts';
import { type Certificate, parseTbsCertificate } from '../../pki/x509/certificate.ts';
import { findExtension } from '../../pki/x509/extensions.ts';
import { canGenerateKey } from '../../pki/x509/key-pair.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { createLogger } from '../../log.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import { dryRunEffect } from '../../store/calls/errors.ts';
import type { HeldCertificate } from '../../store/held-certificates.ts';
import type { Store } from '../../store/store.ts';
import { trustsOf } from '../live-settings.ts';

/** A finding about a holder. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

export type Verdict =
  | { readonly kind: 'renews' }
  | ({ readonly kind: 'rejected' } & Reason)
  /** What the server cannot know. */
  | ({ readonly kind: 'unknown' } & Reason);

const RENEWS: Verdict = { kind: 'renews' };
const unknown = (code: string, message: string): Verdict => ({ kind: 'unknown', code, message });
const rejected = (code: string, message: string): Verdict => ({ kind: 'rejected', code, message });

const upstream = ({ label }: Ca): Verdict =>
  unknown('UPSTREAM_CA', `The CA "${label}" is elsewhere, and nothing was submitted to it.`);

const SILENT = createLogger('error', { write: () => undefined });
/** What is wrong with a key of a CA, which signs nothing here. */
const OF_KEY = /^(file|pkcs11|ocsp)\b/;
/** An RSA key takes long, so all simulations have the same ones. */
const KEYS = new KeyGenerator();
const never = (): Promise<never> => Promise.reject(dryRunEffect());

interface Parts {
  readonly config: Config;
  readonly router: CaRouter;
  /** undefined: client certificates are not verified. */
  readonly trust: ClientTrust | undefined;
  readonly mtls: MtlsPlugin | undefined;
  readonly enrollment: Enrollment;
  readonly now: number;
}

export class Simulation {
  readonly #parts: Parts;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws EstuaryError for an unusable configuration */
  static async create({ config, material }: LoadedService, store: Store, now: number): Promise<Simulation> {
    // Whether a request would be linked to its connection is not judged.
    const est = { ...config.est, require_pop_linking: false };
    const cas = material.cas.map((ca) => (OF_KEY.test(ca.fault ?? '') ? { ...ca, fault: undefined } : ca));
    const router = createRouter(
      { ...config, est },
      { ...material, cas },
      {
        now: () => now,
        env: {},
        log: SILENT,
        makeMutex: (_name, queue) => new FairLimiter({ concurrency: 1, queue }),
        store,
        isKeyless: true,
      },
    );
    const { estTrust: trust } = await trustsOf(material, router);
    const mtls = trust && new MtlsPlugin(() => trust, store, false);
    const enrollment = new Enrollment({
      store,
      log: SILENT,
      now: () => now,
      instance: '',
      authenticator: { authenticate: never },
      otp: { refuseUnusable: never, refuseRepeat: never, hashSecret: never },
      failures: { record: never },
      rules: { clientIdBinding: config.otp.bind_client_id, popLinking: est },
      authorization: { concerns: () => false, decide: never, failure: dryRunEffect },
      keyGenerator: { generate: never, sample: never },
      keyProtection: () => ({
        encryption: 'required',
        password: undefined,
        symmetricKeys: new Map(),
        certificates: new Map(),
      }),
      retryAfter: est.retry_after,
      retryWindow: 0,
      maxWait: 0,
    });
    return new Simulation({ config, router, trust, mtls, enrollment, now });
  }

  get minVersion(): Config['tls']['min_version'] {
    return this.#parts.config.tls.min_version;
  }

  /** The CAs of the labels, for the certificate that one of them issues to the server. */
  get router(): CaRouter {
    return this.#parts.router;
  }

  /**
   * Whether a simplereenroll with this certificate, a new key of the same type and the same names would succeed.
   * @param label where it was issued
   * @throws EstuaryError 500 or 503 from the store
   */
  async renewal(held: HeldCertificate, label: string): Promise<Verdict> {
    let ca: Ca | undefined;
    try {
      if (held.tls_version === 'TLSv1.2' && this.minVersion === 'TLSv1.3')
        return rejected('TLS_VERSION', 'The device uses TLS 1.2, and tls.min_version is TLSv1.3.');
      ca = this.#parts.router.find(held.names_label === 0 ? undefined : label);
      return await this.#simulated(held, ca);
    } catch (error) {
      if (!(error instanceof EstuaryError) || /^(STORE|AUDIT)_/.test(error.code)) throw error;
      // The chain of a CA elsewhere is known only once it answered.
      if (ca?.ownIsRecorded === true && (error.kind === 'unavailable' || error.code === 'CLIENT_CERTIFICATE_UNTRUSTED'))
        return upstream(ca);
      if (error.kind === 'unavailable') return RENEWS;
      return rejected(error.code, error.message);
    }
  }

  async #simulated(held: HeldCertificate, ca: Ca): Promise<Verdict> {
    const { config, trust, mtls, enrollment, now } = this.#parts;
    if (trust === undefined || mtls === undefined)
      throw unauthorized('CLIENT_CERTIFICATE_REQUIRED', 'client certificate required');
    const certificates = new PresentedCertificates(held.der, []);
    // The handshake takes no certificate that has expired.
    const isStrict = config.tls.client_auth.mode === 'required';
    if (isStrict) await validatePresented(trust, certificates, now);
    const presented = { peerCertificate: held.der, peerIntermediates: [], certificates };
    const identity = await mtls.authenticate(
      { ...presented, authorization: undefined, address: '' },
      // A CA that has expired strands its holders.
      { ...renewalContext(ca, now), awaitsChain: () => Promise.resolve(false) },
    );
    if (identity === undefined) throw unauthorized('CLIENT_CERTIFICATE_REQUIRED', 'client certificate required');
    const received = {
      requestId: '',
      operation: 'simplereenroll',
      ca,
      address: '',
      linking: { kind: 'carried' },
    } as const;
    const tbs = await enrollment.simulate(Authenticated.forDryRun(received, identity), () =>
      csrLike(identity.certificate),
    );
    if (ca.ownIsRecorded) return upstream(ca);
    const next = await this.#inTurn(tbs, ca, trust);
    if (next !== undefined)
      return rejected(next.code, `The certificate that it would get could not be renewed: ${next.message}`);
    if (ca.config.authorization !== undefined)
      return unknown('EXTERNAL_AUTHORIZATION', 'The external authorization service decides, and it was not asked.');
    return RENEWS;
  }

  /** Why the certificate that a renewal would give authenticates nobody. */
  async #inTurn(tbs: Buffer | undefined, ca: Ca, trust: ClientTrust): Promise<EstuaryError | undefined> {
    if (tbs === undefined) return undefined;
    const der = sequence(tbs, parseTbsCertificate(tbs).signature, bitString(Buffer.alloc(64)));
    const presented = new PresentedCertificates(der, []);
    const check: Promise<ValidatedClientCertificate> = validatePresented(trust, presented, this.#parts.now, {
      assumedIssuer: ca.certificate,
    });
    return check.then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof EstuaryError) return error;
        throw error;
      },
    );
  }
}

async function csrLike({ subject, extensions, publicKey }: Certificate): Promise<Csr> {
  // A new key of the same type; the same key, if the server does not generate the type.
  const key = canGenerateKey(publicKey.keyType) ? await KEYS.sample(publicKey.keyType) : publicKey;
  const names = findExtension(extensions, OID.subjectAltName);
  const algorithm = defaultSignatureAlgorithm(key.keyType);
  if (algorithm === undefined) throw unauthorized('CLIENT_CERTIFICATE_KEY_REFUSED', 'client certificate key refused');
  return parseCsr(
    await signCsr({
      subject,
      spki: key.spki,
      attributes: extensionRequest(names === undefined ? [] : [{ ...names, critical: false }]),
      algorithm,
      sign: () => Promise.resolve(Buffer.alloc(64)),
    }),
  );
}
