/** Where devices find the server, as far as this browser knows: the admin API does not tell. */
import { EST_PORT, estUrl, WELL_KNOWN } from '../../src/ready-lines.ts';

const KEPT = 'est-server';

export function estAddress(): string {
  return localStorage.getItem(KEPT) ?? `https://${location.hostname}:${EST_PORT}`;
}

export function saveEstAddress(address: string): void {
  localStorage.setItem(KEPT, address);
}

/** What is being typed is shown as it is, too. */
export const shownEstUrl = (address: string): string =>
  estUrl(address) ?? `${address.replace(/\/+$/, '')}${WELL_KNOWN}`;
