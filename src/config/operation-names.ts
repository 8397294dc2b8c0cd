/** The six operations of RFC 7030 §3.2.2, which no CA's label may be. */
export const OPERATION_NAMES = [
  'cacerts',
  'simpleenroll',
  'simplereenroll',
  'fullcmc',
  'serverkeygen',
  'csrattrs',
] as const;
