/** Warns of settings that let one requester use another's name (docs/guides/names.md). */
import { SAN_KINDS } from '../../pki/x509/general-name.ts';
import { finding, type Warning } from '../problem.ts';
import { labelsOf } from '../labels.ts';
import type { Config, ProfileConfig, RequesterMethod } from '../schema.ts';
import type { CaTable } from '../schema/label.ts';

/** Warnings from the keys alone; material/clients.ts adds those from files. */
export function* nameWarnings(config: Config): Generator<Warning> {
  const { otp, est, cmc } = config;
  const labels = labelsOf(config);
  const ca = labels.map(({ table }) => table);
  const byToken = otp.enabled && ca.some((table) => countsAt(table, 'otp') && allowsAnyName(table));
  const bySecret = ca.some((table) => hasSharedSecret({ est, cmc }, table) && allowsAnyName(table));
  if (otp.bind_client_id === 'off' && (byToken || bySecret))
    yield finding(
      'otp.bind_client_id',
      `is "off": anyone with ${byToken ? 'a token' : 'a shared secret'} can ask for any name, including those of others ("cn" or "san")`,
    );
  for (const method of ['ldap', 'jwt'] as const)
    if (config.auth[method]?.bind === 'off' && ca.some((table) => countsAt(table, method) && allowsAnyName(table)))
      yield finding(
        `auth.${method}.bind`,
        `is "off": each requester can ask for any name, including those of others ("cn" or "san")`,
      );
  for (const { key, table } of labels) {
    yield* certificateWarnings(config, table, key);
    yield* templateWarnings(table, key);
  }
}

function* certificateWarnings({ tls }: Config, ca: CaTable, key: string): Generator<Warning> {
  if (tls.client_auth.mode === 'none') return;
  if (ca.client_issuers.includes('any') && countsAt(ca, 'mtls'))
    yield finding(
      `${key}.client_issuers`,
      `contains "any": a certificate of another label can get its names at "${ca.label}" too ("own", "anchors", or files)`,
    );
  if (ca.profile.mtls_subject === 'any' && countsAt(ca, 'mtls') && allowsAnyName(ca))
    yield finding(
      `${key}.profile.mtls_subject`,
      'is "any": anyone with a certificate can ask for any name, including those of others ("auto" or "same")',
    );
  if (ca.profile.allow_subject_change && allowsAnyName(ca))
    yield finding(
      `${key}.profile.allow_subject_change`,
      'is true: anyone with a certificate can change to any name, including those of others (false)',
    );
}

/** Templates that are the same for every requester. */
function* templateWarnings({ profile }: CaTable, key: string): Generator<Warning> {
  const { subject, san } = profile;
  const given = { 'subject.template': subject.template ?? [], 'san.add': san.add ?? [] };
  for (const [name, templates] of Object.entries(given))
    if ([templates].flat().some((template) => !PLACEHOLDER.test(template)))
      yield finding(`${key}.profile.${name}`, 'gives all requesters the same name (a placeholder in it, such as {id})');
}

/** `{id}`, but not the `{2}` of a regular expression. */
const PLACEHOLDER = /\{[a-z]/;

/** Whether the CA's label accepts the method. */
export function countsAt({ auth }: CaTable, method: RequesterMethod): boolean {
  return auth.methods?.includes(method) ?? true;
}

/** Whether a requester of the CA may ask for names that it is not bound to. */
export function hasFreeRequesters({ otp, tls, est, cmc, auth }: Config, ca: CaTable): boolean {
  return (
    (otp.enabled && otp.bind_client_id === 'off' && countsAt(ca, 'otp')) ||
    (['ldap', 'jwt'] as const).some((method) => auth[method]?.bind === 'off' && countsAt(ca, method)) ||
    (est.fullcmc && cmc.shared_secrets.length > 0 && otp.bind_client_id === 'off') ||
    (tls.client_auth.mode !== 'none' && ca.profile.mtls_subject !== 'same' && countsAt(ca, 'mtls'))
  );
}

export function hasSharedSecret({ est, cmc }: Pick<Config, 'est' | 'cmc'>, label: CaTable): boolean {
  const works = cmc.shared_secrets.some(({ ca }) => ca?.includes(label.label) ?? true);
  return est.fullcmc && works && countsAt(label, 'cmc');
}

/** Whether no person, authorization service or profile restricts a requester to its own names. */
export function allowsAnyName({ approval, authorization, profile }: CaTable): boolean {
  return approval === 'auto' && authorization === undefined && !followsFromRequester(profile);
}

/** Whether the profile ties the subject and every allowed subjectAltName to the requester. */
function followsFromRequester({ subject, san }: ProfileConfig): boolean {
  const tied = (patterns: readonly string[] | undefined): boolean =>
    patterns?.every((pattern) => PLACEHOLDER.test(pattern)) ?? false;
  const isTied = (allowed: string): boolean => {
    if (allowed.startsWith('other:')) return tied(san.other);
    const kind = SAN_KINDS.find((kind) => kind === allowed);
    return kind !== undefined && kind !== 'ip' && tied(san[kind]);
  };
  const { template, patterns } = subject;
  const named = template !== undefined || (patterns['CN'] !== undefined && tied([patterns['CN']]));
  return named && san.allowed.every(isTied);
}
