/** The six operations of RFC 7030 §3.2.2, and RFC 8295 §4's: no CA's label may be one of them. */
export const OPERATION_NAMES = [
  'cacerts',
  'simpleenroll',
  'simplereenroll',
  'fullcmc',
  'serverkeygen',
  'csrattrs',
  'crls',
] as const;
