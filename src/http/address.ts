/** The client's network address; an IPv4 one in its own form also on a dual-stack socket. */
export function networkAddress(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(address)?.[1] ?? address;
}
