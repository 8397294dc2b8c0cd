/** The certificate of the service's own listeners, issued by one of its CAs (`tls.automatic`). */
import { generateKeyPairSync, hash, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { certificateFailed, certificateIssued } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { Ca } from '../ca/router.ts';
import type { KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { isKeyOf, readCertificates, readPrivateKey } from '../config/material/reader.ts';
import { describe, failed } from '../errors.ts';
import { makeFolder } from '../folders.ts';
import type { Logger } from '../log.ts';
import { encodePem } from '../pki/der/pem.ts';
import { parseCertificate, pemOf, type Certificate, isIssuedBy } from '../pki/x509/certificate.ts';
import { ipAddress, sameGeneralNames, type GeneralName } from '../pki/x509/general-name.ts';
import { escapeAttributeValue, formatName, parseDistinguishedName } from '../pki/x509/name.ts';
import type { Limiter } from '../process/fair-limiter.ts';
import { isOfIssuer, type CertificateStore } from '../store/certificate-store.ts';
import type { IssuanceStore, Reservation } from '../store/issuance-store.ts';
import { certificateRow } from './certificate-row.ts';

export interface ServerCertificateOptions {
  /** In force. */
  readonly ca: () => Pick<Ca, 'label' | 'driver' | 'certificate' | 'isSubjectOfCa'>;
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
  /** Folder for key and certificate, not shared. */
  readonly folder: string;
  readonly store: Pick<
    CertificateStore & IssuanceStore,
    'reserve' | 'recordCertificate' | 'releaseReservation' | 'findRevoked'
  >;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly now: () => number;
  /** Across nodes: one of them renews. */
  readonly mutex: Limiter;
}

/** Key and certificates are in one file, so that they change together. */
const FILE = 'server.pem';

/** This server's own data is never in a shared database. */
export const serverCertificateFolder = ({ store, audit }: Pick<Config, 'store' | 'audit'>): string =>
  join(dirname(store.driver === 'sqlite' ? store.path : audit.file), 'server-certificate');

/** The file of `tls.automatic`, which the first start creates. */
export const serverCertificateFile = (config: Pick<Config, 'store' | 'audit'>): string =>
  join(serverCertificateFolder(config), FILE);
/** Fraction of the lifetime after which it is renewed. */
const RENEWED_AFTER = 2 / 3;
/** Milliseconds to wait for a renewal by another node. */
const MAX_WAIT = 60_000;

const WHO = 'the server itself';

export class ServerCertificate {
  readonly #options: ServerCertificateOptions;
  #current: KeyPair | undefined;

  constructor(options: ServerCertificateOptions) {
    this.#options = options;
  }

  /** @throws EstuaryError 500 `SERVER_CERTIFICATE_MISSING` before the first {@link refresh} */
  get current(): KeyPair {
    if (this.#current === undefined)
      throw failed('SERVER_CERTIFICATE_MISSING', 'The server certificate is not yet issued.');
    return this.#current;
  }

  /**
   * Loads the certificate file, and renews the certificate if it expires soon, is revoked, or has another CA or other
   * names.
   * @throws the error of the issuance, if there is no certificate: one that has expired is still presented
   */
  async refresh(): Promise<void> {
    const { mutex, log } = this.#options;
    if (await this.#takeGood()) return;
    try {
      const release = await mutex.acquire({ waitMs: MAX_WAIT });
      try {
        // Another node may have renewed it.
        if (await this.#takeGood()) return;
        const pair = await this.#issue();
        this.#keep(pair);
        this.#current = pair;
        const [{ serialNumber: serial, notAfter }] = pair.certificates;
        log.info({ serial, not_after: notAfter.toISOString() }, 'the server certificate was issued');
      } finally {
        release();
      }
    } catch (error) {
      if (this.#current === undefined) throw error;
      log.error({ detail: describe(error) }, 'cannot renew the server certificate');
    }
  }

  /** Loads the certificate. Returns whether it needs no renewal. */
  async #takeGood(): Promise<boolean> {
    const pair = await this.#read();
    if (pair === undefined) return false;
    this.#current = pair;
    return this.#isInTime(pair.certificates[0]) && (await this.#isGood(pair.certificates[0]));
  }

  async #read(): Promise<KeyPair | undefined> {
    const path = join(this.#options.folder, FILE);
    if (!existsSync(path)) return undefined;
    try {
      const [certificates, privateKey] = [await readCertificates(path), await readPrivateKey(path)];
      return isKeyOf(privateKey, certificates[0]) ? { certificates, privateKey } : undefined;
    } catch (error) {
      this.#options.log.error({ detail: describe(error) }, 'cannot use the file of the server certificate');
      return undefined;
    }
  }

  #isInTime({ notBefore, notAfter }: Certificate): boolean {
    const now = this.#options.now();
    return notBefore.getTime() <= now && now < notAfter.getTime();
  }

  async #isGood(certificate: Certificate): Promise<boolean> {
    const { store, now } = this.#options;
    const ca = this.#options.ca();
    const [from, until] = [certificate.notBefore.getTime(), certificate.notAfter.getTime()];
    if (now() >= from + (until - from) * RENEWED_AFTER) return false;
    if (!sameGeneralNames(certificate.subjectAltNames, this.#names())) return false;
    if (!(await isIssuedBy(certificate, ca.certificate))) return false;
    const revoked = await store.findRevoked(certificate.serialNumber);
    return !revoked.some((row) => isOfIssuer(row, certificate.issuer));
  }

  #names(): GeneralName[] {
    return this.#options.names.map((name) =>
      /^[0-9.]+$|:/.test(name) ? ipAddress(name) : { kind: 'dns', value: name },
    );
  }

  /** In two phases like every certificate: intent, signature, record. */
  async #issue(): Promise<KeyPair> {
    const { names, store, instance, now } = this.#options;
    const ca = this.#options.ca();
    const { driver } = ca;
    if (driver.prepareServerCertificate === undefined)
      throw failed('CA_UNUSABLE', `The CA "${ca.label}" issues no certificate for the server.`);
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const subject = parseDistinguishedName(`CN=${escapeAttributeValue(names[0] ?? '')}`);
    if (ca.isSubjectOfCa(subject))
      throw failed(
        'CA_UNUSABLE',
        `tls.automatic: ${formatName(subject)} is the subject of a CA of this server. Put another name first.`,
      );
    const prepared = await driver.prepareServerCertificate({ subject, subjectAltNames: this.#names(), spki });
    const reservation: Reservation = {
      request_id: randomUUID(),
      instance,
      ca: ca.label,
      label: null,
      serial: prepared.serial,
      requester: WHO,
      operation: 'tls.automatic',
      subject: formatName(subject),
      spki_sha256: hash('sha256', spki),
      otp_id: null,
      device_key: null,
      required_device: null,
      created_at: now(),
    };
    const base = { subject: WHO, ca: ca.label, request_id: reservation.request_id } as const;
    const received: AuditEvent = { ...base, type: 'request.received', outcome: 'success', detail: 'tls.automatic' };
    const reserved = await store.reserve(reservation, [received]);
    if (reserved !== 'reserved')
      throw failed('CA_SIGNING_FAILED', 'The CA could not sign the certificate.', { detail: reserved });
    try {
      const result = await prepared.issue();
      if (result.status !== 'issued') throw failed('CA_SIGNING_FAILED', 'The CA could not sign the certificate.');
      const row = certificateRow(result.certificate, {
        ca: ca.label,
        requester: WHO,
        method: 'automatic',
        request_id: reservation.request_id,
      });
      const event = { ...base, serial: row.serial };
      await store.recordCertificate(row, [
        { ...event, type: 'ca.signature', outcome: 'success' },
        certificateIssued(event, row, 'tls.automatic'),
      ]);
      return { certificates: [parseCertificate(result.certificate), ...intermediates(ca)], privateKey };
    } catch (error) {
      // What the store cannot close now, the next start closes.
      await store
        .releaseReservation(reservation.request_id, [certificateFailed(base, describe(error))])
        .catch(() => undefined);
      throw error;
    }
  }

  #keep({ certificates, privateKey }: KeyPair): void {
    const { folder } = this.#options;
    makeFolder(folder);
    chmodSync(folder, 0o700);
    const draft = join(folder, `.${FILE}`);
    const key = encodePem('PRIVATE KEY', privateKey.export({ type: 'pkcs8', format: 'der' }));
    writeFileSync(draft, `${key}${pemOf(certificates)}`, { mode: 0o600, flush: true });
    renameSync(draft, join(folder, FILE));
  }
}

/** The certificates between this one and a root that clients have. */
function intermediates({ driver }: Pick<Ca, 'driver'>): Certificate[] {
  const chain = driver.chain().map((der) => parseCertificate(der));
  const root = chain.findIndex(({ subject, issuer }) => subject.der.equals(issuer.der));
  return root === -1 ? chain : chain.slice(0, root);
}
