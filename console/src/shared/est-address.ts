/** The EST address for devices: the user's entry, or the address that the server reports. */
import { EST_PORT, estUrl, WELL_KNOWN } from '../../../src/ready-lines.ts';
import { service } from './service.ts';

const KEPT = 'est-server';

const reported = (): string => {
  const known = service.value?.est_url;
  return known === undefined ? `https://${location.hostname}:${EST_PORT}` : known.replace(WELL_KNOWN, '');
};

export const estAddress = (): string => localStorage.getItem(KEPT) ?? reported();

export function saveEstAddress(address: string): void {
  if (address === '' || address === reported()) localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, address);
}

/** Accepts an address that is still incomplete. */
export const shownEstUrl = (address: string): string =>
  estUrl(address) ?? `${address.replace(/\/+$/, '')}${WELL_KNOWN}`;
