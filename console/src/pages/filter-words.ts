/** Describes a selection of certificates, and links to its list. */
import { link } from '../shared/router.ts';

/** The filters of the certificate list, for bulk revocation and campaigns. */
const SELECTION = [
  'ca',
  'label',
  'subject',
  'san',
  'serial',
  'fingerprint_sha256',
  'requester',
  'device',
  'status',
  'issued_after',
  'expires_before',
] as const;

export type Selection = Readonly<Record<string, string>>;

const WORDS: Readonly<Record<string, (value: string) => string>> = {
  ca: (value) => `CA ${value}`,
  label: (value) => `label ${value}`,
  subject: (value) => `subject contains “${value}”`,
  san: (value) => `a name contains “${value}”`,
  serial: (value) => `serial number ${value}`,
  fingerprint_sha256: (value) => `fingerprint ${value}`,
  requester: (value) => `requester ${value}`,
  device: (value) => `device ${value}`,
  status: (value) => value,
  issued_after: (value) => `issued after ${value.slice(0, 10)}`,
  expires_before: (value) => `expiring before ${value.slice(0, 10)}`,
};

export const selectionInWords = (of: object): string =>
  Object.entries(of)
    .map(([name, value]: [string, unknown]) => WORDS[name]?.(String(value)) ?? `${name} ${String(value)}`)
    .join(', ');

/** The part of a query that selects certificates. */
export const selectionOf = (query: Selection): Selection =>
  Object.fromEntries(SELECTION.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));

/** Whether it narrows the list by more than the state, as the API requires. */
export const isSelective = (of: Selection): boolean => Object.keys(of).some((name) => name !== 'status');

export const selectionLink = (of: object): string =>
  link(
    ['certificates'],
    Object.fromEntries(Object.entries(of).map(([name, value]: [string, unknown]) => [name, String(value)])),
  );
