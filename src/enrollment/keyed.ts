/** Stage with the key to certify: the requester's own, or one generated in this step. */
import type { AuditEvent } from '../audit/event.ts';
import type { SealedKey } from '../ca/driver.ts';
import { failed, unavailable, type EstuaryError } from '../errors.ts';
import { parseCsr, verifyCsr, type RequestKey, type VerifiedCsr } from '../pki/pkcs10/csr.ts';
import type { CsrContent } from '../pki/pkcs10/csr-content.ts';
import { buildCsr } from '../pki/pkcs10/csr-builder.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { RequestFormat, RequestOverride } from '../store/request-store.ts';
import type { Authorized } from './authorized.ts';
import type { GeneratedKey, KeyGenerator } from './key-generation.ts';
import { protectKey, type KeyPart, type KeyProtection } from './key-protection.ts';
import type { OwnKey } from './proven.ts';
import { eventBase, type RequestBase } from './request.ts';

/** How and to whom a generated key is delivered. */
export interface Delivery {
  readonly keyType: string;
  readonly protection: KeyProtection;
  /** Whether the client has disconnected. */
  readonly isGone: () => boolean;
}

interface KeyToCertify {
  readonly publicKey: PublicKeyInfo;
  /** A PKCS #10 that proves possession of the key and requests the certificate's names, for CAs that need one. */
  readonly proof: VerifiedCsr | undefined;
  /** Of the request's DER. */
  readonly format: RequestFormat;
  /** Key and signature for the csrattrs check; undefined for a generated key. */
  readonly shown?: RequestKey;
  /** Encrypted for the CA's key archive, if any. */
  readonly sealed?: SealedKey | undefined;
  /** Encoded for delivery; undefined if it is not delivered. */
  readonly part?: KeyPart;
}

type KeySource = Pick<KeyGenerator, 'generate' | 'sample'>;

/** Created only with the key of an authorized request. */
export class Keyed {
  readonly request: RequestBase;
  readonly csr: CsrContent;
  readonly names: Authorized['names'];
  readonly authorized: Authorized;
  readonly key: KeyToCertify;
  readonly #more: readonly AuditEvent[];

  private constructor(authorized: Authorized, key: KeyToCertify, more: readonly AuditEvent[] = []) {
    this.#more = more;
    const { request, csr, names } = authorized;
    this.authorized = authorized;
    this.request = { ...request, events: [...request.events, ...more] };
    this.csr = csr;
    this.names = names;
    this.key = key;
  }

  /** With an external service's override of names and validity, and the same key. */
  overridden(override: RequestOverride): Keyed {
    const key: KeyToCertify = { ...this.key, proof: undefined };
    return new Keyed(this.authorized.overridden(override), key, this.#more);
  }

  static own(authorized: Authorized, { publicKey, proof, format, shown }: OwnKey): Keyed {
    const unchanged = authorized.csr.renamed === true ? undefined : proof;
    return new Keyed(authorized, { publicKey, proof: unchanged, format, shown });
  }

  /**
   * Generates and protects the key; zeroes the private key before it returns or throws. The caller zeroes the part.
   * @throws EstuaryError 503 `KEY_GENERATION_BUSY`, `CLIENT_GONE`; 500 `KEY_ARCHIVE_MISSING`; 500 or 503 from archive
   * or signer
   */
  static async generated(
    authorized: Authorized,
    { keyType, protection, isGone }: Delivery,
    { keys, now }: { readonly keys: KeySource; readonly now: () => number },
  ): Promise<Keyed> {
    const { request } = authorized;
    const { driver, profile } = request.ca;
    const generated = await keys.generate(keyType);
    try {
      const { publicKey, pkcs8 } = generated;
      if (driver.keyArchive === undefined && profile.key_escrow === true)
        throw failed('KEY_ARCHIVE_MISSING', 'The key could not be archived, which this CA requires.');
      const proof = await proofFor(authorized, generated);
      const sealed = await driver.keyArchive?.seal(pkcs8);
      const part = await protectKey(request.ca, pkcs8, protection, new Date(now()));
      if (isGone()) {
        part.der.fill(0);
        throw clientGone();
      }
      const event = {
        ...eventBase(request),
        type: 'key.generated',
        outcome: 'success',
        detail: publicKey.keyType,
      } as const;
      return new Keyed(authorized, { publicKey, proof, format: 'pkcs10', sealed, part }, [event]);
    } finally {
      generated.dispose();
    }
  }

  /**
   * With a discarded key of this type, for checks of a certificate before its key exists. Never certified.
   * @throws EstuaryError 503 `KEY_GENERATION_BUSY`
   */
  static async sample(authorized: Authorized, keyType: string, keys: KeySource): Promise<Keyed> {
    if (authorized.request.ca.driver.takesCsr !== true)
      return new Keyed(authorized, { publicKey: await keys.sample(keyType), proof: undefined, format: 'pkcs10' });
    const generated = await keys.generate(keyType);
    try {
      const { publicKey } = generated;
      return new Keyed(authorized, { publicKey, proof: await proofFor(authorized, generated), format: 'pkcs10' });
    } finally {
      generated.dispose();
    }
  }
}

async function proofFor(
  { request, names }: Authorized,
  { publicKey, pkcs8 }: GeneratedKey,
): Promise<VerifiedCsr | undefined> {
  if (request.ca.driver.takesCsr !== true) return undefined;
  return verifyCsr(parseCsr(await buildCsr({ ...names, publicKey, pkcs8 })));
}

/** The key is sent only once: without a client, no certificate is issued and no OTP use taken. */
const clientGone = (): EstuaryError =>
  unavailable('CLIENT_GONE', 'The client closed its connection before its key was ready.');
