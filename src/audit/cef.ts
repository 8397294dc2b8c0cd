/**
 * Formats audit records in the Common Event Format for SIEMs:
 * `CEF:0|vendor|product|version|id|name|severity|extension`.
 */
import { isIPv6 } from 'node:net';
import type { AuditRecord } from './event.ts';

/** Event types with a high severity (0 to 10): operators should be alerted. */
const ALARMS: ReadonlySet<string> = new Set(['lockout.started', 'audit.recovered', 'certificate.failed']);

export function cefLine(record: AuditRecord, version: string): string {
  const header = ['CEF:0', 'Estuary', 'Estuary', version, record.type, nameOf(record), severityOf(record)];
  const extension = Object.entries(extensionOf(record)).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${extensionValue(value)}`],
  );
  return `${header.map(headerField).join('|')}|${extension.join(' ')}`;
}

const nameOf = ({ type, outcome }: AuditRecord): string => `${type.replaceAll('.', ' ')} ${outcome}`;

function severityOf({ type, outcome }: AuditRecord): string {
  if (ALARMS.has(type)) return '8';
  return outcome === 'failure' ? '6' : '3';
}

/** Uses the keys of the format's dictionary; other fields become custom strings with labels. */
function extensionOf(record: AuditRecord): Readonly<Record<string, string | undefined>> {
  const { address } = record;
  const custom: readonly (readonly [label: string, value: string | undefined])[] = [
    ['ca', record.ca],
    ['serial', record.serial],
    ['requestId', record.request_id],
    ['certificateSubject', record.certificate_subject],
    ['certificateSans', record.certificate_sans?.join(' ')],
    ['recordHash', record.hash],
  ];
  return {
    rt: String(Date.parse(record.time)),
    externalId: String(record.seq),
    dvchost: record.node,
    outcome: record.outcome,
    reason: record.revocation_reason,
    suser: record.subject,
    ...(address === undefined || !isIPv6(address)
      ? { src: address }
      : { c6a2: address, c6a2Label: 'Source IPv6 Address' }),
    ...Object.fromEntries(
      custom.flatMap(([label, value], n) =>
        value === undefined
          ? []
          : [
              [`cs${n + 1}Label`, label],
              [`cs${n + 1}`, value],
            ],
      ),
    ),
    msg: record.detail,
  };
}

const headerField = (text: string, n: number): string =>
  n === 0
    ? text
    : text
        .replaceAll('\\', '\\\\')
        .replaceAll('|', '\\|')
        .replaceAll(/[\r\n]+/g, ' ');

const extensionValue = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('=', '\\=').replaceAll('\r', '\\r').replaceAll('\n', '\\n');
