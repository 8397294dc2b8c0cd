/** The TLS side of the EST and admin listeners: versions, suites, client certificates. */
import { constants } from 'node:crypto';
import type { SecureContextOptions, Server, TlsOptions } from 'node:tls';
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { bitString, integer, oid, sequence, time } from '../pki/der/der.ts';
import { encodePem } from '../pki/der/pem.ts';
import { parsePemCertificates, pemOf } from '../pki/x509/certificate.ts';
import { isObject } from '../process/protocol.ts';
import type { TicketSecret } from './ticket-secret.ts';

/** How a listener names the CAs whose certificates it hopes for, without OpenSSL judging by them. */

/** An X25519 key of zeros: no certificate can claim to be signed with it, so OpenSSL takes it for nobody's issuer. */
const NO_SIGNER = sequence(sequence(oid('1.3.101.110')), bitString(Buffer.alloc(32)));
const ED25519 = sequence(oid('1.3.101.112'));
const NO_SIGNATURE = bitString(Buffer.alloc(64));
const NEVER = sequence(time(new Date(0)), time(new Date(0)));

/**
 * Certificates that are nothing but the subjects of others. Node has one list, `ca`, for whom the handshake trusts and for
 * what stands in CertificateRequest (RFC 8446 §4.2.4, RFC 5246 §7.4.4), by which some clients choose their certificate.
 *
 * @param certificates PEM
 * @returns PEM, one for each distinct subject
 */
function authorityNames(certificates: readonly string[]): string[] {
  const subjects = parsePemCertificates(certificates.join('\n')).map(({ subject }) => subject.der);
  const distinct = new Map(subjects.map((der) => [der.toString('hex'), der]));
  return [...distinct.values()].map((subject) => {
    const tbs = sequence(integer(1), ED25519, subject, NEVER, subject, NO_SIGNER);
    return encodePem('CERTIFICATE', sequence(tbs, ED25519, NO_SIGNATURE));
  });
}

/** AEAD suites with forward secrecy only; the first three are TLS 1.3's. */
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

/** The modes of `tls.client_auth.mode` and `admin.tls.mode`. */
export type ClientAuthMode = 'required' | 'optional' | 'required_for_reenroll' | 'none';

export interface TlsMaterial {
  /** PEM: leaf first, then intermediates. */
  readonly certificate: string | Buffer;
  /** PEM. */
  readonly privateKey: string | Buffer;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Key exchanges, the preferred first. */
  readonly groups: readonly string[];
  /** PEM certificates that client certificates may chain to; empty in mode `none`. */
  readonly clientCas: readonly string[];
}

/** What makes one TLS listener another than the next, from start to stop. */
export interface TlsListener {
  readonly name: 'est' | 'admin';
  readonly mode: ClientAuthMode;
  /** Milliseconds that a handshake may take. */
  readonly handshakeTimeout: number;
  /** From which the keys of session tickets are derived. */
  readonly ticketSecret: TicketSecret;
}

/**
 * The part that a reload replaces (`server.setSecureContext`, which wants the full set each time).
 *
 * Only mode `required` lets the handshake decide. In the others a bad certificate must still be able to fall back to
 * another method, so the request is where it is judged: the handshake names the CAs and knows nothing else of them.
 * Whatever OpenSSL found wrong would stay behind as an error that the next read of the connection reports.
 */
export function secureContext(material: TlsMaterial, listener: TlsListener): SecureContextOptions & TlsOptions {
  const { clientCas } = material;
  return {
    cert: material.certificate,
    key: material.privateKey,
    minVersion: material.minVersion,
    maxVersion: 'TLSv1.3',
    ciphers: SUITES,
    honorCipherOrder: true,
    ecdhCurve: material.groups.join(':'),
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // An anchor may be an intermediate: the spec's file holds "CA certificates that issue acceptable client certificates".
    allowPartialTrustChain: true,
    // Without any, Node takes the public CAs that it knows.
    ca: listener.mode === 'required' ? [...clientCas] : authorityNames(clientCas),
    // A session of one listener means nothing to the other: its client certificate was asked for under other rules.
    sessionIdContext: `estuary ${listener.name}`,
    ticketKeys: ticketKeys(material, listener),
  };
}

const ticketKeys = ({ clientCas }: Pick<TlsMaterial, 'clientCas'>, { name, ticketSecret }: TlsListener): Buffer =>
  ticketSecret.keysOf(name, clientCas);

/** Options for `https.createServer`: what holds from start to stop. Nobody can connect before {@link present}. */
export function handshakeOptions(listener: TlsListener): TlsOptions {
  return {
    requestCert: listener.mode !== 'none',
    rejectUnauthorized: listener.mode === 'required',
    handshakeTimeout: listener.handshakeTimeout,
    ALPNProtocols: ['http/1.1'],
  };
}

/** Puts certificates, key and anchors in force on a server; connections that are open stay. */
export function present(server: Server, material: TlsMaterial, listener: TlsListener): void {
  server.setSecureContext(secureContext(material, listener));
  acceptPartialChains(server);
}

/** Puts the present keys of session tickets in force, with the same material as before. */
export function renewTicketKeys(server: Server, material: TlsMaterial, listener: TlsListener): void {
  server.setTicketKeys(ticketKeys(material, listener));
}

/**
 * Makes `allowPartialTrustChain` true: Node 26's `tls.Server` passes every option on to its context but this one, so
 * in mode `required` an anchor that is an intermediate would let nobody in. To be called after
 * each `setSecureContext`. Where Node has nothing of this kind to call, the handshake stays the stricter one.
 */
export function acceptPartialChains(server: Server): void {
  const credentials: unknown = Reflect.get(server, '_sharedCreds');
  const context: unknown = isObject(credentials) ? Reflect.get(credentials, 'context') : undefined;
  const accept: unknown = isObject(context) ? Reflect.get(context, 'setAllowPartialTrustChain') : undefined;
  if (typeof accept === 'function') Reflect.apply(accept, context, []);
}

/** What a listener presents and whom it lets try, in the forms that Node's TLS takes. */
export function tlsMaterial(
  pair: KeyPair,
  { min_version: minVersion, groups }: Pick<Config['tls'], 'min_version' | 'groups'>,
  trust: ClientTrust | undefined,
): TlsMaterial {
  return { ...presented(pair), minVersion, groups, clientCas: trust?.tlsCertificates ?? [] };
}

/** What a listener presents. */
export function presented({ certificates, privateKey }: KeyPair): Pick<TlsMaterial, 'certificate' | 'privateKey'> {
  return { certificate: pemOf(certificates), privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
}
