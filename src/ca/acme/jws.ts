/** JWS in flattened form (RFC 8555 §6.2): ES256 with the account key, HS256 for external account binding. */
import { createHash, createHmac, createPublicKey, sign, type KeyObject } from 'node:crypto';

export interface Jwk {
  readonly kty: 'EC';
  readonly crv: string;
  readonly x: string;
  readonly y: string;
}

const base64url = (data: string | Buffer): string => Buffer.from(data).toString('base64url');

/** The JWK (RFC 7517) of a P-256 account key. @throws TypeError for any other key */
export function jwkOf(key: KeyObject): Jwk {
  const { kty, crv, x, y } = createPublicKey(key).export({ format: 'jwk' });
  if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
    throw new TypeError('the account key is not an EC P-256 key');
  return { kty, crv, x, y };
}

/** RFC 7638 */
export const thumbprint = ({ crv, kty, x, y }: Jwk): string =>
  createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');

/** @param payload undefined for POST-as-GET */
export function signedBody(key: KeyObject, header: object, payload: object | undefined): Buffer {
  const head = base64url(JSON.stringify({ alg: 'ES256', ...header }));
  const body = payload === undefined ? '' : base64url(JSON.stringify(payload));
  const signature = sign('sha256', Buffer.from(`${head}.${body}`), { key, dsaEncoding: 'ieee-p1363' });
  return Buffer.from(JSON.stringify({ protected: head, payload: body, signature: base64url(signature) }));
}

/** RFC 8555 §7.3.4 */
export function externalAccountBinding(kid: string, hmacKey: Buffer, url: string, jwk: Jwk): object {
  const head = base64url(JSON.stringify({ alg: 'HS256', kid, url }));
  const body = base64url(JSON.stringify(jwk));
  const signature = createHmac('sha256', hmacKey).update(`${head}.${body}`).digest('base64url');
  return { protected: head, payload: body, signature };
}

/** The value of the TXT record of a dns-01 challenge (RFC 8555 §8.4). */
export const dnsRecord = (token: string, jwk: Jwk): string =>
  createHash('sha256')
    .update(`${token}.${thumbprint(jwk)}`)
    .digest('base64url');
