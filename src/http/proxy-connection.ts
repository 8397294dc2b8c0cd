/** Connections that come through a balancer which tells the client's address before anything else (PROXY protocol). */
import { BlockList, isIPv4, type Socket } from 'node:net';
import { networkAddress } from './address.ts';
import { LONGEST_PROXY_HEADER, readProxyHeader } from './proxy-header.ts';

/** The balancers: address blocks. */
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

export interface ProxyHeaderTaker {
  /** @param address the client's; undefined: the connection's own @param length octets that the header took */
  readonly taken: (address: string | undefined, length: number) => void;
  /** The connection is closed already. */
  readonly refused: (reason: string) => void;
}

/**
 * Takes the header off a connection, and leaves what follows it to whoever reads next. A header that is wrong, or not whole in time, ends it.
 *
 * @param timeout milliseconds
 */
export function takeProxyHeader(socket: Socket, timeout: number, { taken, refused }: ProxyHeaderTaker): void {
  let bytes: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => refuse('the header did not come in time'), timeout);
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
    // No more than a header may have; what is longer was refused before it could grow.
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
