/** CMCStatusInfo and CMCStatusInfoV2 (RFC 5272 §6.1): the status of a request and its parts. */
import {
  DerError,
  DerReader,
  Tag,
  generalizedTime,
  integer,
  octetString,
  oid,
  readInteger,
  readOid,
  readString,
  readTime,
  sequence,
  utf8String,
  type DerElement,
} from '../der/der.ts';
import { encodeBodyPartReferences, readBodyPartReferences, type BodyPartReference } from './body-part.ts';

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

type CmcStatusName = keyof typeof CMC_STATUS;

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

/** When to poll again, and with which token. */
interface PendInfo {
  readonly pendToken: Buffer;
  /** Whole seconds. */
  readonly pendTime: Date;
}

interface ExtendedFailInfo {
  readonly oid: string;
  readonly value: Buffer;
}

/** OtherStatusInfo. A number is a CMCFailInfo outside the standard's list (closed environments use 1000 to 1999). */
type OtherStatusInfo =
  | { readonly failInfo: CmcFailInfoName | number }
  | { readonly pendInfo: PendInfo }
  | { readonly extendedFailInfo: ExtendedFailInfo };

/** CMCStatusInfoV2; CMCStatusInfo is the same without body part paths and extendedFailInfo. */
export interface CmcStatusInfo {
  readonly status: CmcStatusName;
  readonly bodyList: readonly BodyPartReference[];
  readonly statusString?: string;
  readonly otherInfo?: OtherStatusInfo;
}

const statusNames = new Map<number, CmcStatusName>(entries(CMC_STATUS));
const failInfoNames = new Map<number, CmcFailInfoName>(entries(CMC_FAIL_INFO));

function entries<N extends string>(table: Readonly<Record<N, number>>): [number, N][] {
  const names: [number, N][] = [];
  for (const name in table) names.push([table[name], name]);
  return names;
}

/** @param element CMCStatusInfoV2 or CMCStatusInfo */
export function readStatusInfo(element: DerElement): CmcStatusInfo {
  if (element.tag !== Tag.SEQUENCE) throw new DerError('CMCStatusInfo: unexpected tag');
  const reader = new DerReader(element.value, 'CMCStatusInfo');
  const status = statusNames.get(readInteger(reader.next(Tag.INTEGER, 'cMCStatus'), 'cMCStatus'));
  if (status === undefined) throw new DerError('CMCStatusInfo.cMCStatus: unknown');
  const bodyList = readBodyPartReferences(reader.next(Tag.SEQUENCE, 'bodyList'));
  const text = reader.optional(Tag.UTF8_STRING, 'statusString');
  const otherInfo = reader.done ? undefined : readOtherInfo(reader.next(undefined, 'otherInfo'));
  reader.end();
  return {
    status,
    bodyList,
    ...(text === undefined ? {} : { statusString: readString(text, 'statusString') }),
    ...(otherInfo === undefined ? {} : { otherInfo }),
  };
}

/** CMCFailInfo, PendInfo and ExtendedFailInfo have different tags. */
function readOtherInfo(element: DerElement): OtherStatusInfo {
  if (element.tag === Tag.INTEGER) {
    const code = readInteger(element, 'failInfo');
    return { failInfo: failInfoNames.get(code) ?? code };
  }
  if (element.tag !== Tag.SEQUENCE) throw new DerError('OtherStatusInfo: unexpected tag');
  const reader = new DerReader(element.value, 'OtherStatusInfo');
  if (reader.nextTag === Tag.OID) {
    const dotted = readOid(reader.next(Tag.OID, 'failInfoOID'));
    const value = reader.next(undefined, 'failInfoValue').raw;
    reader.end();
    return { extendedFailInfo: { oid: dotted, value } };
  }
  const pendToken = reader.next(Tag.OCTET_STRING, 'pendToken').value;
  const pendTime = readTime(reader.next(Tag.GENERALIZED_TIME, 'pendTime'), 'pendTime');
  reader.end();
  return { pendInfo: { pendToken, pendTime } };
}

/** DER of CMCStatusInfoV2, which is also CMCStatusInfo if only its fields are used. */
export function encodeStatusInfo({ status, bodyList, statusString, otherInfo }: CmcStatusInfo): Buffer {
  return sequence(
    integer(CMC_STATUS[status]),
    encodeBodyPartReferences(bodyList),
    ...(statusString === undefined ? [] : [utf8String(statusString)]),
    ...(otherInfo === undefined ? [] : [encodeOtherInfo(otherInfo)]),
  );
}

function encodeOtherInfo(info: OtherStatusInfo): Buffer {
  if ('failInfo' in info)
    return integer(typeof info.failInfo === 'number' ? info.failInfo : CMC_FAIL_INFO[info.failInfo]);
  if ('pendInfo' in info)
    return sequence(octetString(info.pendInfo.pendToken), generalizedTime(info.pendInfo.pendTime));
  return sequence(oid(info.extendedFailInfo.oid), info.extendedFailInfo.value);
}
