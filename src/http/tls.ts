/** The TLS side of both listeners: versions, suites, client certificates. */
import { constants } from 'node:crypto';
import type { SecureContextOptions, Server, TlsOptions } from 'node:tls';

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
  readonly certificate: Buffer;
  /** PEM. */
  readonly privateKey: Buffer;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** PEM certificates that client certificates may chain to; empty in mode `none`. */
  readonly clientCas: readonly string[];
}

/**
 * The part that a reload replaces (`server.setSecureContext`, which wants the full set each time).
 */
export function secureContext(material: TlsMaterial): SecureContextOptions {
  return {
    cert: material.certificate,
    key: material.privateKey,
    minVersion: material.minVersion,
    maxVersion: 'TLSv1.3',
    ciphers: SUITES,
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // An anchor may be an intermediate: the spec's file holds "CA certificates that issue acceptable client certificates".
    allowPartialTrustChain: true,
    ...(material.clientCas.length === 0 ? {} : { ca: [...material.clientCas] }),
  };
}

/**
 * Options for `https.createServer`.
 *
 * Only mode `required` lets the handshake decide. In the others a bad certificate must still be able to fall back to
 * another method, so the request is where it is judged.
 *
 * @param handshakeTimeout milliseconds that a handshake may take
 */
export function tlsOptions(material: TlsMaterial, mode: ClientAuthMode, handshakeTimeout: number): TlsOptions {
  return {
    ...secureContext(material),
    requestCert: mode !== 'none',
    rejectUnauthorized: mode === 'required',
    handshakeTimeout,
    ALPNProtocols: ['http/1.1'],
  };
}

/**
 * Makes `allowPartialTrustChain` true: Node 24's `tls.Server` passes every option on to its context but this one, so
 * in mode `required` an anchor that is an intermediate would let nobody in. To be called after the server has been made
 * and after each `setSecureContext`. Where Node has nothing of this kind to call, the handshake stays the stricter one.
 */
export function acceptPartialChains(server: Server): void {
  const credentials: unknown = Reflect.get(server, '_sharedCreds');
  const context: unknown = isObject(credentials) ? Reflect.get(credentials, 'context') : undefined;
  const accept: unknown = isObject(context) ? Reflect.get(context, 'setAllowPartialTrustChain') : undefined;
  if (typeof accept === 'function') Reflect.apply(accept, context, []);
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
