/** `admin device create` and `change`: a device, by options. */
import { readFile } from 'node:fs/promises';
import { InputError } from '../../../pki/input-error.ts';
import { parseCertificate, parsePemCertificates } from '../../../pki/x509/certificate.ts';
import { spkiHash } from '../../../pki/x509/public-key.ts';
import { EXIT, UsageError } from '../command.ts';
import type { JsonRecord } from './json.ts';
import { formatOf, printRecord } from './output.ts';
import type { Session } from './session.ts';
import { inPath } from './show.ts';
import { readTime } from './times.ts';

interface DeviceValues {
  readonly id: string;
  readonly 'ca-label': string | undefined;
  readonly 'match-issuer': string | undefined;
  readonly 'match-issuer-spki': string | undefined;
  readonly 'issuer-file': string | undefined;
  readonly 'match-serial-number': string | undefined;
  readonly 'match-common-name': string | undefined;
  readonly 'match-san': string | undefined;
  readonly 'match-fingerprint': string | undefined;
  readonly attribute: readonly string[];
  readonly 'not-after': string | undefined;
  readonly note: string | undefined;
  readonly json: boolean;
  readonly csv: boolean;
}

/** What may be taken away, and what stands for its absence. */
const CLEARED: JsonRecord = { ca: null, match: null, attributes: {}, not_after: null, note: null };

export const create = {
  async run(
    values: DeviceValues & { readonly disabled: boolean; readonly upsert: boolean },
    session: Session,
  ): Promise<number> {
    formatOf(values);
    const { id, disabled, upsert } = values;
    const body = { id, ...(await fieldsOf(values, session.now())), ...(disabled ? { enabled: false } : {}) };
    const query = { mode: upsert ? 'upsert' : undefined };
    printRecord(await session.client.record('POST', '/admin/devices', { query, body }), values, session);
    return EXIT.ok;
  },
};

export const change = {
  async run(values: DeviceValues & { readonly clear: readonly string[] }, session: Session): Promise<number> {
    formatOf(values);
    const unknown = values.clear.find((name) => !Object.hasOwn(CLEARED, name));
    if (unknown !== undefined)
      throw new UsageError(`--clear: "${unknown}" is none of ${Object.keys(CLEARED).join(', ')}`);
    const fields = await fieldsOf(values, session.now());
    const both = values.clear.find((name) => Object.hasOwn(fields, name));
    if (both !== undefined) throw new UsageError(`--clear ${both} does not go with a new one`);
    const body = { ...fields, ...Object.fromEntries(values.clear.map((name) => [name, CLEARED[name]])) };
    if (Object.keys(body).length === 0) throw new UsageError('what is to change? An option says it');
    const path = `/admin/devices/${inPath(values.id)}`;
    printRecord(await session.client.record('PATCH', path, { body }), values, session);
    return EXIT.ok;
  },
};

/** @throws UsageError */
async function fieldsOf(values: DeviceValues, now: number): Promise<JsonRecord> {
  const { 'ca-label': ca, note, 'not-after': end, 'issuer-file': file } = values;
  if (file !== undefined && values['match-issuer-spki'] !== undefined)
    throw new UsageError('--issuer-file and --match-issuer-spki exclude each other');
  const match = given({
    issuer: values['match-issuer'],
    issuer_spki_sha256: file === undefined ? values['match-issuer-spki'] : await keyOfIssuer(file),
    serial_number: values['match-serial-number'],
    common_name: values['match-common-name'],
    san: values['match-san'],
    fingerprint_sha256: values['match-fingerprint'],
  });
  return given({
    ca,
    note,
    not_after: end === undefined ? undefined : readTime('--not-after', end, now, 1),
    match: Object.keys(match).length === 0 ? undefined : match,
    attributes: values.attribute.length === 0 ? undefined : Object.fromEntries(values.attribute.map(readAttribute)),
  });
}

/** The SHA-256 of the key in the file of a CA certificate, PEM or DER. @throws UsageError */
async function keyOfIssuer(file: string): Promise<string> {
  try {
    const bytes = await readFile(file);
    const [issuer, ...more] = bytes.includes('-----BEGIN ')
      ? parsePemCertificates(bytes.toString('latin1'))
      : [parseCertificate(bytes)];
    if (issuer === undefined || more.length > 0) throw new InputError('the file must contain exactly one certificate');
    if (!issuer.isCa && issuer.version > 1) throw new InputError('this is not the certificate of a CA');
    return spkiHash(issuer);
  } catch (error) {
    throw new UsageError(`--issuer-file ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readAttribute(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--attribute: "${text}" is not of the form NAME=TEXT`);
  return [text.slice(0, at), text.slice(at + 1)];
}

const given = (fields: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, one]) => one !== undefined));
