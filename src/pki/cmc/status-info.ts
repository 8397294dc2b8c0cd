/** CMCStatusInfo and CMCStatusInfoV2 (RFC 5272 §6.1): the status of a request and its parts. */
import { DerError, Tag, integer, readInteger } from '../der/der.ts';
import { named, OBJECT_ID, OCTETS, optional, raw, record, syntax, TIME, UTF8, type ValueOf } from '../der/syntax.ts';
import { BODY_PART_REFERENCES } from './body-part.ts';

/** CMCStatus (RFC 5272 §6.1.3). */
const CMC_STATUS = {
  success: 0,
  failed: 2,
  pending: 3,
  noSupport: 4,
  confirmRequired: 5,
  popRequired: 6,
  partial: 7,
} as const;

/** CMCFailInfo (RFC 5272 §6.1.4). */
const CMC_FAIL_INFO = {
  badAlg: 0,
  badMessageCheck: 1,
  badRequest: 2,
  badTime: 3,
  badCertId: 4,
  unsupportedExt: 5,
  mustArchiveKeys: 6,
  badIdentity: 7,
  popRequired: 8,
  popFailed: 9,
  noKeyReuse: 10,
  internalCAError: 11,
  tryLater: 12,
  authDataFail: 13,
} as const;

export type CmcFailInfoName = keyof typeof CMC_FAIL_INFO;

/** When to poll again (whole seconds), and with which token. */
const PEND_INFO = record('PendInfo', { pendToken: OCTETS, pendTime: TIME });
const EXTENDED_FAIL_INFO = record('ExtendedFailInfo', { oid: OBJECT_ID, value: raw() });

/** OtherStatusInfo. A number is a CMCFailInfo outside the standard's list (closed environments use 1000 to 1999). */
type OtherStatusInfo =
  | { readonly failInfo: CmcFailInfoName | number }
  | { readonly pendInfo: ValueOf<typeof PEND_INFO> }
  | { readonly extendedFailInfo: ValueOf<typeof EXTENDED_FAIL_INFO> };

const failInfoNames = new Map<number, CmcFailInfoName>();
for (const [name, code] of Object.entries(CMC_FAIL_INFO)) failInfoNames.set(code, name as CmcFailInfoName);

/** The three kinds have different tags, or first fields. */
const OTHER_INFO = syntax<OtherStatusInfo>(
  undefined,
  (element, what) => {
    if (element.tag === Tag.INTEGER) {
      const code = readInteger(element, what);
      return { failInfo: failInfoNames.get(code) ?? code };
    }
    if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
    return element.value[0] === Tag.OID
      ? { extendedFailInfo: EXTENDED_FAIL_INFO.read(element) }
      : { pendInfo: PEND_INFO.read(element) };
  },
  (info) => {
    if ('failInfo' in info)
      return integer(typeof info.failInfo === 'number' ? info.failInfo : CMC_FAIL_INFO[info.failInfo]);
    return 'pendInfo' in info ? PEND_INFO.encode(info.pendInfo) : EXTENDED_FAIL_INFO.encode(info.extendedFailInfo);
  },
);

/** CMCStatusInfoV2; CMCStatusInfo is the same without body part paths and extendedFailInfo. */
export const STATUS_INFO = record('CMCStatusInfo', {
  status: named(Tag.INTEGER, CMC_STATUS),
  bodyList: BODY_PART_REFERENCES,
  statusString: optional(UTF8),
  otherInfo: optional(OTHER_INFO, () => true),
});
export type CmcStatusInfo = ValueOf<typeof STATUS_INFO>;
