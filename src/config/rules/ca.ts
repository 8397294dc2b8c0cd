import { isAbsolute } from 'node:path';
import { attributeType } from '../../pki/x509/attribute-types.ts';
import { labelsOf, type ConfiguredLabel } from '../labels.ts';
import { finding, type Finding } from '../findings.ts';
import { furtherLabelChecks } from './labels.ts';
import { countsAt } from './names.ts';
import { extensionChecks } from './profile-extensions.ts';
import { OPERATION_NAMES } from '../vocabulary.ts';
import { isRemoteDriver } from '../schema/ca.ts';
import { checkSubjectKey, SUBJECT_KEY_ALLOWED } from '../schema/csrattrs.ts';
import type { CaConfig, Config, CsrAttrsConfig, EstCaConfig, Pkcs11CaConfig, ProfileConfig } from '../schema.ts';

/** Checks on the `[[ca]]` and `[[label]]` tables. */
export function* caChecks(config: Config): Generator<Finding> {
  const { ca } = config;
  if (ca.length === 0) return;
  const labels = labelsOf(config);
  yield* defaultChecks(labels);
  yield* nameChecks(labels);
  yield* furtherLabelChecks(config);
  for (const { table, key } of labels) yield* ruleChecks(table, key);
  for (const [index, one] of ca.entries()) {
    const key = `ca[${index}]`;
    if (one.driver === 'pkcs11') yield* pkcs11Checks(one.pkcs11, `${key}.pkcs11`);
    if (isRemoteDriver(one.driver)) {
      const who = one.driver === 'dogtag' ? 'Dogtag' : 'the upstream CA';
      yield* remoteChecks(one, key, who);
      yield* remoteNameChecks(one, key, who);
      yield* remoteProfileChecks(one, key, who);
    }
    if (one.driver === 'est') yield* estChecks(one.est, `${key}.est`);
    if (one.driver === 'acme') yield* acmeChecks(config, one, key);
    if (one.driver === 'command') yield* programChecks(one.command, `${key}.command`, ['issue', 'poll', 'revoke']);
  }
}

function* ruleChecks(one: CaConfig, key: string): Generator<Finding> {
  if (one.approvals > 1 && one.approval === 'auto')
    yield finding(
      `${key}.approvals`,
      `is ${one.approvals}, and approval is "auto", so nobody approves (approval = "manual")`,
      `${key}.approval`,
    );
  const { start, end } = one.renewal;
  for (const [name, time] of Object.entries({ start, end }))
    if (time >= 1 && !Number.isInteger(time))
      yield finding(`${key}.renewal.${name}`, `is ${time} (a number below 1, or a whole number of seconds)`);
  if (start < 1 === end < 1 && (start < 1 ? start >= end : start <= end))
    yield finding(`${key}.renewal.end`, `is ${end}, not after start, which is ${start}`, `${key}.renewal.start`);
  yield* profileChecks(one.profile, `${key}.profile`);
  yield* extensionChecks(one.profile, `${key}.profile`);
  yield* deviceCaChecks(one, key);
  yield* escrowChecks(one, key);
  yield* authorizationChecks(one, `${key}.authorization`);
  if (one.csrattrs !== undefined) yield* csrAttrsChecks(one.csrattrs, one.profile, key);
}

function* nameChecks(labels: readonly ConfiguredLabel[]): Generator<Finding> {
  const seen = new Set<string>();
  for (const { nameKey: key, table } of labels) {
    const { label } = table;
    if (seen.has(label)) yield finding(key, `"${label}" occurs twice (a different label for each CA)`);
    seen.add(label);
    if (OPERATION_NAMES.some((name) => name === label))
      yield finding(key, `"${label}" is the name of an operation (another label)`);
  }
}

function* defaultChecks(labels: readonly ConfiguredLabel[]): Generator<Finding> {
  const [first, ...more] = labels.filter(({ table }) => table.default);
  const about = labels.map(({ key }) => `${key}.default`);
  if (first === undefined) yield finding('ca', 'no CA is the default (default = true in exactly one)', ...about);
  for (const { key } of more)
    yield finding(
      `${key}.default`,
      `is true, and so is ${first?.key ?? ''}.default (default = true in exactly one)`,
      ...about,
    );
}

function* pkcs11Checks(pkcs11: Pkcs11CaConfig['pkcs11'], key: string): Generator<Finding> {
  const exclusive = [
    ['token_label', pkcs11.token_label, 'slot', pkcs11.slot],
    ['key_label', pkcs11.key_label, 'key_id', pkcs11.key_id],
  ] as const;
  for (const [one, oneValue, other, otherValue] of exclusive) {
    if ((oneValue === undefined) !== (otherValue === undefined)) continue;
    yield finding(
      `${key}.${one}`,
      `${oneValue === undefined ? 'is missing, and so is' : 'is given, and so is'} ${other} (one of the two)`,
      `${key}.${other}`,
    );
  }
}

function* remoteChecks({ ocsp, profile }: CaConfig, key: string, who: string): Generator<Finding> {
  if (ocsp !== undefined)
    yield finding(`${key}.ocsp`, `is given, and ${who} answers OCSP itself (leave the section out)`);
  if (profile.allow_subject_change)
    yield finding(`${key}.profile.allow_subject_change`, `is true, and ${who} uses the names of the CSR (false)`);
}

/** A remote CA decides these with its own profile. */
function* remoteProfileChecks({ profile }: CaConfig, key: string, who: string): Generator<Finding> {
  const given = {
    backdate_seconds: profile.backdate_seconds !== undefined,
    policies: profile.policies.length > 0,
    extensions: profile.extensions.length > 0,
    certificate_authority: profile.certificate_authority !== undefined,
  };
  for (const [name, isGiven] of Object.entries(given))
    if (isGiven)
      yield finding(`${key}.profile.${name}`, `is given, and the profile of ${who} decides it (leave it out)`);
}

/** A CA that takes names from the CSR cannot use other names. */
function* remoteNameChecks({ profile }: CaConfig, key: string, who: string): Generator<Finding> {
  const given = { 'subject.template': profile.subject.template, 'san.add': profile.san.add };
  for (const [name, value] of Object.entries(given))
    if (value !== undefined)
      yield finding(`${key}.profile.${name}`, `is given, and ${who} uses the names of the CSR (leave it out)`);
}

/** Authentication at the upstream CA: a certificate or a password. */
function* estChecks(
  { client_certificate, client_key, username, password }: EstCaConfig['est'],
  key: string,
): Generator<Finding> {
  const pairs = [
    ['client_certificate', client_certificate, 'client_key', client_key],
    ['username', username, 'password', password],
  ] as const;
  for (const [one, oneValue, other, otherValue] of pairs)
    if ((oneValue === undefined) !== (otherValue === undefined)) {
      const [given, missing] = oneValue === undefined ? [other, one] : [one, other];
      yield finding(`${key}.${given}`, `is set without ${missing} (both, or neither)`, `${key}.${missing}`);
    }
  if (client_certificate === undefined && username === undefined)
    yield finding(
      `${key}.client_certificate`,
      'is missing, and so is username (how this server authenticates at the upstream CA)',
      `${key}.username`,
      `${key}.client_key`,
      `${key}.password`,
    );
}

/** The ACME account may get any name that it is authorized for, so every requester must be bound to names. */
function* acmeChecks(config: Config, ca: Extract<CaConfig, { driver: 'acme' }>, key: string): Generator<Finding> {
  const { acme, profile } = ca;
  yield* programChecks(acme, `${key}.acme`, ['dns_hook']);
  if (acme.challenge === 'dns-01' && acme.dns_hook === undefined)
    yield finding(`${key}.acme.dns_hook`, 'is missing, and challenge is "dns-01" (a program, or challenge = "none")');
  if ((acme.eab_kid === undefined) !== (acme.eab_hmac_key === undefined))
    yield finding(`${key}.acme.eab_kid`, 'and eab_hmac_key go together (both, or neither)', `${key}.acme.eab_hmac_key`);
  const { otp, tls, est, cmc, auth } = config;
  const isFree =
    (otp.enabled && otp.bind_client_id === 'off' && countsAt(ca, 'otp')) ||
    (['ldap', 'jwt'] as const).some((method) => auth[method]?.bind === 'off' && countsAt(ca, method)) ||
    (est.fullcmc && cmc.shared_secrets.length > 0 && otp.bind_client_id === 'off') ||
    (tls.client_auth.mode !== 'none' && profile.mtls_subject !== 'same' && countsAt(ca, 'mtls'));
  if (profile.san.dns === undefined && isFree)
    yield finding(
      `${key}.profile.san.dns`,
      'is missing, and requesters are not bound to names (patterns, or otp.bind_client_id and mtls_subject = "same")',
      'otp.bind_client_id',
      `${key}.profile.mtls_subject`,
    );
}

/** Programs need a path, since PATH is not searched. */
function* programChecks(table: object, key: string, names: readonly string[]): Generator<Finding> {
  for (const name of names) {
    const words: unknown = Reflect.get(table, name);
    const program: unknown = Array.isArray(words) ? words[0] : undefined;
    if (typeof program === 'string' && !isAbsolute(program))
      yield finding(`${key}.${name}`, `"${program}" is not an absolute path (the path of a program)`);
  }
}

function* profileChecks(profile: ProfileConfig, key: string): Generator<Finding> {
  if (profile.validity_days > profile.max_validity_days)
    yield finding(
      `${key}.validity_days`,
      `is more than max_validity_days (at most ${profile.max_validity_days})`,
      `${key}.max_validity_days`,
    );
  if (profile.validity_seconds !== undefined && profile.validity_seconds > profile.max_validity_days * 86_400)
    yield finding(
      `${key}.validity_seconds`,
      `is more than max_validity_days (at most ${profile.max_validity_days * 86_400})`,
      `${key}.max_validity_days`,
    );
  const { backdate_seconds = 60, validity_seconds } = profile;
  if (validity_seconds !== undefined && backdate_seconds * 2 > validity_seconds)
    yield finding(
      `${key}.backdate_seconds`,
      `is more than half of validity_seconds (at most ${Math.floor(validity_seconds / 2)})`,
      `${key}.validity_seconds`,
    );
  const { required, allowed, patterns } = profile.subject;
  for (const type of required)
    if (allowed !== undefined && !allowed.some((one) => attributeType(one) === attributeType(type)))
      yield finding(
        `${key}.subject.required`,
        `"${type}" is required and not allowed (a type that is in allowed)`,
        `${key}.subject.allowed`,
      );
  for (const type of Object.keys(patterns)) {
    const reason = checkSubjectKey(type);
    if (reason !== undefined) yield finding(`${key}.subject.patterns`, `${reason} (${SUBJECT_KEY_ALLOWED})`);
  }
  for (const kind of profile.san.required)
    if (!profile.san.allowed.includes(kind))
      yield finding(
        `${key}.san.required`,
        `"${kind}" is required and not allowed (a kind that is in allowed)`,
        `${key}.san.allowed`,
      );
}

/** A label that issues CA certificates: a person approves each, and their names are limited. */
function* deviceCaChecks(
  { approval, profile: { certificate_authority: table } }: CaConfig,
  ca: string,
): Generator<Finding> {
  if (table === undefined) return;
  const key = `${ca}.profile.certificate_authority`;
  if (approval !== 'manual')
    yield finding(
      `${ca}.approval`,
      `is "${approval}", and the label issues CA certificates (approval = "manual")`,
      key,
    );
  const { permitted_dns, permitted_ip, permitted_email, permitted_uri } = table;
  if ([permitted_dns, permitted_ip, permitted_email, permitted_uri].every((names) => names.length === 0))
    yield finding(
      key,
      'has no permitted names (permitted_dns, permitted_ip, permitted_email or permitted_uri)',
      `${key}.permitted_dns`,
    );
}

function* escrowChecks(ca: CaConfig, key: string): Generator<Finding> {
  if (ca.profile.key_escrow !== true) return;
  if (ca.driver === 'dogtag' && ca.dogtag.kra_urls.length > 0) return;
  yield finding(
    `${key}.profile.key_escrow`,
    'is true, and there is no key recovery authority (false, or kra_urls of a CA behind Dogtag PKI)',
    `${key}.dogtag.kra_urls`,
    `${key}.driver`,
  );
}

function* authorizationChecks({ authorization }: CaConfig, key: string): Generator<Finding> {
  if (authorization === undefined) return;
  const { client_certificate, client_key } = authorization;
  if ((client_certificate === undefined) === (client_key === undefined)) return;
  const [given, missing] =
    client_key === undefined ? ['client_certificate', 'client_key'] : ['client_key', 'client_certificate'];
  yield finding(`${key}.${given}`, `is given without ${missing} (both, or neither)`, `${key}.${missing}`);
}

function* csrAttrsChecks(csrattrs: CsrAttrsConfig, profile: ProfileConfig, ca: string): Generator<Finding> {
  const key = `${ca}.csrattrs`;
  if (csrattrs.key_type !== undefined && !profile.key_types.includes(csrattrs.key_type))
    yield finding(
      `${key}.key_type`,
      `"${csrattrs.key_type}" is not in the profile's key_types (${profile.key_types.join(', ')})`,
      `${ca}.profile.key_types`,
    );
  if (csrattrs.subject.length > 0 && !csrattrs.template)
    yield finding(
      `${key}.subject`,
      'is given, and template is false (template = true: a subject stands in the template only)',
      `${key}.template`,
    );
  for (const [index, rdn] of csrattrs.subject.entries()) {
    if (Object.keys(rdn).length === 0) yield finding(`${key}.subject[${index}]`, 'is empty (one attribute or more)');
    for (const type of Object.keys(rdn)) {
      const reason = checkSubjectKey(type);
      if (reason !== undefined) yield finding(`${key}.subject[${index}]`, `${reason} (${SUBJECT_KEY_ALLOWED})`);
    }
  }
}
