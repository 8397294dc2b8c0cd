/** TLS of the EST and admin listeners: versions, suites, client certificates. */
import { constants } from 'node:crypto';
import { createSecureContext, type SecureContextOptions, type Server, type TlsOptions } from 'node:tls';
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { bitString, integer, oid, sequence, time } from '../pki/der/der.ts';
import { encodePem } from '../pki/der/pem.ts';
import { type Certificate, parsePemCertificates, pemOf } from '../pki/x509/certificate.ts';
import type { Name } from '../pki/x509/name.ts';
import { isObject } from '../process/protocol.ts';
import type { TicketSecret } from './ticket-secret.ts';

/** Names the acceptable CAs in the handshake without letting OpenSSL verify against them. */

/** An X25519 key of zeros: no certificate can be signed with it, so OpenSSL considers it nobody's issuer. */
const NO_SIGNER = sequence(sequence(oid('1.3.101.110')), bitString(Buffer.alloc(32)));
const ED25519 = sequence(oid('1.3.101.112'));
const NO_SIGNATURE = bitString(Buffer.alloc(64));
const NEVER = sequence(time(new Date(0)), time(new Date(0)));

/**
 * Certificates that contain only names. Node's `ca` is both the trust list and the content of
 * CertificateRequest (RFC 8446 §4.2.4, RFC 5246 §7.4.4), by which some clients choose their certificate.
 * @returns PEM, one per distinct name
 */
function authorityNames(names: readonly Name[]): string[] {
  const distinct = new Map(names.map(({ der }) => [der.toString('hex'), der]));
  return [...distinct.values()].map((subject) => {
    const tbs = sequence(integer(1), ED25519, subject, NEVER, subject, NO_SIGNER);
    return encodePem('CERTIFICATE', sequence(tbs, ED25519, NO_SIGNATURE));
  });
}

/** Only AEAD suites with forward secrecy; the first three are TLS 1.3's. */
const SUITES = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
].join(':');

export type ClientAuthMode = 'required' | 'optional' | 'required_for_reenroll' | 'none';

export interface TlsMaterial {
  /** PEM: leaf first, then intermediates. */
  readonly certificate: string | Buffer;
  readonly privateKey: string | Buffer;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Key exchange groups, preferred first. */
  readonly groups: readonly string[];
  /** PEM certificates to which client certificates may chain; empty in mode `none`. */
  readonly clientCas: readonly string[];
  /** PEM certificates of proxies, whose issuers are named and not trusted. */
  readonly proxies?: readonly string[];
}

interface TlsConfig {
  readonly server: Pick<Config['server'], 'handshake_timeout'>;
  readonly tls: { readonly client_auth: { readonly mode: ClientAuthMode } };
  readonly admin: { readonly tls: { readonly mode: ClientAuthMode } };
  readonly est: { readonly client_certificate_header?: unknown };
}

/** The TLS settings of one listener. */
export class TlsEnd {
  readonly #name: 'est' | 'admin';
  readonly #mode: ClientAuthMode;
  readonly #ticketSecret: TicketSecret;
  /** Fixed options for `https.createServer`. Nobody can connect before {@link present}. */
  readonly options: TlsOptions;

  constructor(name: 'est' | 'admin', { server, tls, admin, est }: TlsConfig, ticketSecret: TicketSecret) {
    this.#name = name;
    this.#mode = name === 'est' ? tls.client_auth.mode : admin.tls.mode;
    this.#ticketSecret = ticketSecret;
    this.options = {
      // In mode none, a proxy shows its certificate.
      requestCert: this.#mode !== 'none' || (name === 'est' && est.client_certificate_header !== undefined),
      rejectUnauthorized: this.#mode === 'required',
      handshakeTimeout: server.handshake_timeout * 1000,
      ALPNProtocols: ['http/1.1', 'http/1.0'],
    };
  }

  /** @throws Error if TLS cannot use it */
  check(material: TlsMaterial): void {
    createSecureContext(this.secureContext(material));
  }

  /** Puts certificates, key and anchors in force on a server; open connections stay. */
  present(server: Server, material: TlsMaterial): void {
    server.setSecureContext(this.secureContext(material));
    acceptPartialChains(server);
  }

  /** Call periodically: session ticket keys change with each period. */
  renewTicketKeys(server: Server, material: TlsMaterial): void {
    server.setTicketKeys(this.#ticketKeys(material));
  }

  /**
   * The part that a reload replaces (`server.setSecureContext`, which needs the full set each time).
   *
   * The handshake decides only in mode `required`. In other modes a client with an invalid certificate may use another
   * method, so the request validates it; the handshake only names the CAs. Otherwise OpenSSL's error would stay in its
   * queue until the next read of the connection.
   */
  secureContext(material: TlsMaterial): SecureContextOptions & TlsOptions {
    const { clientCas, proxies = [] } = material;
    const anchors = this.#mode === 'required' ? [...clientCas, ...proxies] : [];
    const named = parsePemCertificates(clientCas.join('\n')).map(({ subject }) => subject);
    const issuers = parsePemCertificates(proxies.join('\n')).map(({ issuer }) => issuer);
    // An anchor names itself; a second certificate with its name would only be tried in vain.
    const names =
      anchors.length === 0
        ? [...named, ...issuers]
        : issuers.filter((issuer) => !named.some((name) => name.der.equals(issuer.der)));
    return {
      cert: material.certificate,
      key: material.privateKey,
      minVersion: material.minVersion,
      maxVersion: 'TLSv1.3',
      ciphers: SUITES,
      honorCipherOrder: true,
      ecdhCurve: material.groups.join(':'),
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      // An anchor may be an intermediate.
      allowPartialTrustChain: true,
      // Without any, Node would use its public CAs.
      ca: [...anchors, ...authorityNames(names)],
      // Sessions are not shared between listeners, whose rules for client certificates differ.
      sessionIdContext: `estuary ${this.#name}`,
      ticketKeys: this.#ticketKeys(material),
    };
  }

  #ticketKeys({ clientCas, proxies = [] }: TlsMaterial): Buffer {
    return this.#ticketSecret.keysOf(this.#name, [...clientCas, ...proxies]);
  }
}

/**
 * Sets `allowPartialTrustChain`: Node 26's `tls.Server` passes every other option to its context, so in mode `required`
 * an intermediate as anchor would accept no client. Call it after each `setSecureContext`. If Node lacks the internal
 * function, the handshake stays strict.
 */
export function acceptPartialChains(server: Server): void {
  const credentials: unknown = Reflect.get(server, '_sharedCreds');
  const context: unknown = isObject(credentials) ? Reflect.get(credentials, 'context') : undefined;
  const accept: unknown = isObject(context) ? Reflect.get(context, 'setAllowPartialTrustChain') : undefined;
  if (typeof accept === 'function') Reflect.apply(accept, context, []);
}

export function tlsMaterial(
  pair: KeyPair,
  { min_version: minVersion, groups }: Pick<Config['tls'], 'min_version' | 'groups'>,
  trust: ClientTrust | undefined,
  proxies: readonly Certificate[] = [],
): TlsMaterial {
  const ofProxies = proxies.map((proxy) => pemOf([proxy]));
  return { ...presented(pair), minVersion, groups, clientCas: trust?.tlsCertificates ?? [], proxies: ofProxies };
}

export function presented({ certificates, privateKey }: KeyPair): Pick<TlsMaterial, 'certificate' | 'privateKey'> {
  return { certificate: pemOf(certificates), privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
}
