/** Parses the PROXY protocol header, versions 1 and 2, per HAProxy's specification. */
import { BlockList, isIPv4, isIPv6, type Socket } from 'node:net';
import { formatAddress, ipAddress } from '../pki/x509/general-name.ts';
import { networkAddress } from './address.ts';

type ProxyHeader =
  /** More octets are needed. */
  | { readonly kind: 'incomplete' }
  | {
      readonly kind: 'header';
      /** Octets of the header. */
      readonly length: number;
      /** The client's address; undefined: the connection's own counts (`LOCAL`, `UNKNOWN`). */
      readonly address: string | undefined;
    }
  /** For the log. */
  | { readonly kind: 'invalid'; readonly reason: string };

const V1 = Buffer.from('PROXY ', 'latin1');
/** Maximum line of version 1, including its end. */
const V1_LONGEST = 107;
const V2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const V2_FIXED = 16;
/** Octets after the fixed part of version 2: addresses and TLVs, which are ignored. */
const V2_LONGEST = 2048;

/** Octets of a version 2 address block: source and destination address, source and destination port. */
const V2_FAMILIES: ReadonlyMap<number, number> = new Map([
  [0x11, 4],
  [0x21, 16],
]);
const V2_UNSPECIFIED = 0x00;

const INCOMPLETE: ProxyHeader = { kind: 'incomplete' };
const invalid = (reason: string): ProxyHeader => ({ kind: 'invalid', reason });

/** Maximum octets of a header. */
export const LONGEST_PROXY_HEADER = V2_FIXED + V2_LONGEST;

/** Parses the header at the beginning of the received data. Never throws. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsLike(bytes, V2)) return bytes.length < V2_FIXED ? INCOMPLETE : readV2(bytes);
  if (startsLike(bytes, V1)) return readV1(bytes);
  return invalid('the PROXY header is missing');
}

/** Whether it begins with these octets, or may do so with more data. */
const startsLike = (bytes: Buffer, signature: Buffer): boolean => {
  const length = Math.min(bytes.length, signature.length);
  return bytes.subarray(0, length).equals(signature.subarray(0, length));
};

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, V1_LONGEST).indexOf('\r\n');
  if (end < 0) return bytes.length < V1_LONGEST ? INCOMPLETE : invalid('the line is too long');
  const length = end + 2;
  const line = bytes.toString('latin1', 0, end);
  const [, family, ...rest] = line.split(' ');
  // The rest of the line is ignored.
  if (family === 'UNKNOWN') return { kind: 'header', length, address: undefined };
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isPlainIPv6 : undefined;
  if (isAddress === undefined) return invalid('the protocol is not TCP4, TCP6 or UNKNOWN');
  const [source = '', destination = '', ...ports] = rest;
  if (!isAddress(source) || !isAddress(destination)) return invalid('an address is not valid');
  if (ports.length !== 2 || !ports.every(isPort)) return invalid('a port is not valid');
  return { kind: 'header', length, address: ipAddress(source).value };
}

const isPlainIPv6 = (text: string): boolean => isIPv6(text) && !text.includes('%');

const isPort = (text: string): boolean => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;

function readV2(bytes: Buffer): ProxyHeader {
  const [versionAndCommand = 0, family = 0] = bytes.subarray(V2.length);
  const rest = bytes.readUInt16BE(V2.length + 2);
  const length = V2_FIXED + rest;
  if (versionAndCommand >> 4 !== 2) return invalid('the version is not 2');
  const command = versionAndCommand & 0x0f;
  if (command > 1) return invalid('the command is not LOCAL or PROXY');
  if (rest > V2_LONGEST) return invalid('the header is too long');
  if (bytes.length < length) return INCOMPLETE;
  if (command === 0 || family === V2_UNSPECIFIED) return { kind: 'header', length, address: undefined };
  const octets = V2_FAMILIES.get(family);
  if (octets === undefined) return invalid('the protocol is not TCP over IPv4 or IPv6');
  if (rest < 2 * octets + 4) return invalid('the addresses are cut off');
  return { kind: 'header', length, address: formatAddress(bytes.subarray(V2_FIXED, V2_FIXED + octets)) };
}

/** Connections through a balancer that reports the client's address first (PROXY protocol). */

/** The balancers' address blocks. */
export class Balancers {
  readonly #blocks = new BlockList();

  /** @param blocks `10.0.0.7/32`, `2001:db8::/64` */
  constructor(blocks: readonly string[]) {
    for (const block of blocks) {
      const [address = '', bits = ''] = block.split('/');
      this.#blocks.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
    }
  }

  has(remoteAddress: string): boolean {
    const address = networkAddress(remoteAddress);
    return this.#blocks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }
}

interface ProxyHeaderTaker {
  /** @param address the client's; undefined: the connection's own @param length octets of the header */
  readonly taken: (address: string | undefined, length: number) => void;
  /** The connection is already closed. */
  readonly refused: (reason: string) => void;
}

/**
 * Removes the header from a connection and leaves the rest to the next reader. An invalid or late header closes the
 * connection.
 * @param timeout milliseconds
 */
export function takeProxyHeader(socket: Socket, timeout: number, { taken, refused }: ProxyHeaderTaker): void {
  let bytes: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => refuse('the header did not arrive in time'), timeout);
  const ignore = (): void => undefined;
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('readable', read).off('close', stop).off('error', ignore);
  };
  const refuse = (reason: string): void => {
    stop();
    socket.on('error', ignore);
    socket.destroy();
    refused(reason);
  };
  const read = (): void => {
    // Limited to a header's maximum; longer ones were rejected earlier.
    const chunk: unknown = socket.read();
    if (!Buffer.isBuffer(chunk)) {
      if (socket.readableEnded) refuse('the connection ended before the header');
      return;
    }
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const header = readProxyHeader(bytes);
    if (header.kind === 'invalid') refuse(header.reason);
    else if (header.kind === 'header') {
      stop();
      const rest = bytes.subarray(header.length);
      if (rest.length > 0) socket.unshift(rest);
      taken(header.address, header.length);
    } else if (bytes.length > LONGEST_PROXY_HEADER) refuse('the header is too long');
  };
  socket.on('readable', read).on('close', stop).on('error', ignore);
}
