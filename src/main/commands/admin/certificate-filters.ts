/** The options of commands that are about the certificates that filters find. */

/** What certificates are found by; by what the API calls it. */
export const CERTIFICATE_FILTERS = {
  'ca-label': 'ca',
  label: 'label',
  subject: 'subject',
  san: 'san',
  serial: 'serial',
  requester: 'requester',
  device: 'device',
  status: 'status',
  'issued-after': 'issued_after',
  'expires-before': 'expires_before',
} as const;

export const CERTIFICATE_TIMES = { 'issued-after': -1, 'expires-before': 1 } as const;
