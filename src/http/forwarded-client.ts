/** The client of a trusted proxy: its certificate (RFC 9440) and its address. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { MAX_INTERMEDIATES, PresentedCertificates } from '../auth/mtls/presented-certificates.ts';
import { badRequest, EstuaryError } from '../errors.ts';
import { boundsProblem } from '../pki/x509/certificate-bounds.ts';
import { isSameCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { unlessMalformed } from '../pki/der/der.ts';
import { setClientAddress } from './address.ts';
import { connectionCertificates } from './credentials.ts';

export interface Forwarding {
  readonly proxies: () => readonly Certificate[];
  /** `client_address`; undefined: the connection's address counts. */
  readonly clientAddress: 'x-forwarded-for' | 'proxy-protocol' | undefined;
  readonly now: () => number;
}

/** The client of a forwarded request; undefined: it has no certificate. */
export type Forwarded = { readonly certificates: PresentedCertificates | undefined };

const LEAF = 'client-cert';
const CHAIN = 'client-cert-chain';

/** Characters; Node limits all headers together. */
const MAX_CHAIN = 64 * 1024;

const read = new WeakMap<IncomingMessage, Forwarded | EstuaryError | undefined>();

/** Reads the headers of a request, before its address is used. {@link forwardedOf} throws a recorded error. */
export function readForwarded(request: IncomingMessage, forwarding: Forwarding): void {
  try {
    read.set(request, forwardedBy(request, forwarding));
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    read.set(request, error);
  }
}

/** The client that the proxy reports; undefined for a direct request. @throws EstuaryError 400 `FORWARDED_CLIENT` */
export function forwardedOf(request: IncomingMessage): Forwarded | undefined {
  const found = read.get(request);
  if (found instanceof EstuaryError) throw found;
  return found;
}

function forwardedBy(request: IncomingMessage, forwarding: Forwarding): Forwarded | undefined {
  const leaf = only(request, LEAF);
  // RFC 8941 §3.1: a list may span lines.
  const lines = valuesOf(request, CHAIN);
  const chain = lines.length === 0 ? undefined : lines.join(',');
  if (!isProxy(request, forwarding)) {
    if (leaf === undefined && chain === undefined) return undefined;
    throw refused('This connection may not send Client-Cert or Client-Cert-Chain: it is not that of a trusted proxy.');
  }
  if (forwarding.clientAddress === 'x-forwarded-for') setClientAddress(request, lastAddress(request));
  if (leaf === undefined) {
    if (chain !== undefined) throw refused('The request has Client-Cert-Chain without Client-Cert.');
    return { certificates: undefined };
  }
  const der = octets(leaf, 'Client-Cert');
  if (unlessMalformed(() => boundsProblem(der), 'malformed') !== undefined)
    throw refused('The value of Client-Cert is not a certificate of an acceptable size.');
  if ((chain ?? '').length > MAX_CHAIN) throw refused('Client-Cert-Chain is too long.');
  const further =
    chain === undefined ? [] : chain.split(/[\t ]*,[\t ]*/).map((item) => octets(item, 'Client-Cert-Chain'));
  if (further.length > MAX_INTERMEDIATES)
    throw refused(`Client-Cert-Chain has ${further.length} certificates; at most ${MAX_INTERMEDIATES} are accepted.`);
  return { certificates: new PresentedCertificates(der, further) };
}

/** The handshake has proved possession of the certificate's key. */
function isProxy({ socket }: IncomingMessage, { proxies, now }: Forwarding): boolean {
  const presented = socket instanceof TLSSocket ? connectionCertificates(socket).certificates : undefined;
  if (presented === undefined) return false;
  const at = now();
  try {
    const own = presented.leaf();
    return (
      own.notBefore.getTime() <= at &&
      at < own.notAfter.getTime() + 1000 &&
      proxies().some((proxy) => isSameCertificate(proxy, own))
    );
  } catch (error) {
    if (error instanceof EstuaryError) return false;
    throw error;
  }
}

/** The exact value of a header that occurs once. */
function only(request: IncomingMessage, wanted: string): string | undefined {
  const [value, ...more] = valuesOf(request, wanted);
  if (more.length > 0) throw refused(`The request has more than one ${wanted} header; it must have one.`);
  return value;
}

const valuesOf = ({ rawHeaders }: IncomingMessage, wanted: string): readonly string[] =>
  rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === wanted);

/** The octets of a byte sequence (RFC 8941 §3.3.5). */
function octets(item: string, name: string): Buffer {
  const base64 = /^:([A-Za-z0-9+/]+={0,2}):$/.exec(item)?.[1];
  if (base64 === undefined || base64.length % 4 !== 0)
    throw refused(`The value of ${name} is not a byte sequence (RFC 8941): it must be base64 between colons.`);
  return Buffer.from(base64, 'base64');
}

/** The entry that the trusted proxy added. */
function lastAddress({ headers }: IncomingMessage): string {
  const given = headers['x-forwarded-for'];
  if (given === undefined)
    throw refused('X-Forwarded-For is missing: the proxy must send the address of the client in it.');
  const value = [given].flat().join(',').split(',').at(-1)?.trim() ?? '';
  const address = value.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1');
  if (isIP(address) === 0) throw refused('The last entry of X-Forwarded-For is not an IP address.');
  return address;
}

const refused = (message: string): EstuaryError => badRequest('FORWARDED_CLIENT', message);
