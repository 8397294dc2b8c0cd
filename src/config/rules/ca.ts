import { driverOf } from '../../ca/drivers.ts';
import { attributeType } from '../../pki/x509/attribute-types.ts';
import { type ConfiguredLabel, labelsOf } from '../labels.ts';
import { bothOrNeither, type Finding, finding } from '../problem.ts';
import { hasFreeRequesters } from './names.ts';
import { OPERATION_NAMES } from '../vocabulary.ts';
import { ATTRIBUTE_ALLOWED, checkAttributeName } from '../schema/formats.ts';
import type { CaConfig, Config, CsrAttrsConfig, ProfileConfig } from '../schema.ts';
import { firstRepeated, OID } from '../../pki/der/oids.ts';

/** Checks on the `[[ca]]` and `[[label]]` tables. */
export function* caChecks(config: Config): Generator<Finding> {
  const { ca } = config;
  if (ca.length === 0) return;
  const labels = labelsOf(config);
  yield* defaultChecks(labels);
  yield* nameChecks(labels);
  yield* furtherLabelChecks(config);
  for (const { table, key, of } of labels) {
    yield* ruleChecks(table, key);
    if (table.profile.forward_extensions.length > 0 && driverOf(of ?? table).remote === undefined)
      yield finding(`${key}.profile.forward_extensions`, 'is given, and this CA forwards nothing (extensions)');
  }
  for (const [index, table] of ca.entries()) {
    const key = `ca[${index}]`;
    const driver = driverOf(table);
    const { remote: who } = driver;
    if (who !== undefined) {
      yield* remoteChecks(table, key, who);
    }
    yield* driver.checks?.(table, key, () => hasFreeRequesters(config, table)) ?? [];
  }
}

function* ruleChecks(table: CaConfig, key: string): Generator<Finding> {
  if (table.approvals > 1 && table.approval === 'auto')
    yield finding(
      `${key}.approvals`,
      `is ${table.approvals}, and approval is "auto", so nobody approves (approval = "manual")`,
      `${key}.approval`,
    );
  const { start, end } = table.renewal;
  for (const [name, time] of Object.entries({ start, end }))
    if (time >= 1 && !Number.isInteger(time))
      yield finding(`${key}.renewal.${name}`, `is ${time} (a number below 1, or a whole number of seconds)`);
  if (start < 1 === end < 1 && (start < 1 ? start >= end : start <= end))
    yield finding(`${key}.renewal.end`, `is ${end}, not after start, which is ${start}`, `${key}.renewal.start`);
  yield* profileChecks(table.profile, `${key}.profile`);
  yield* extensionChecks(table.profile, `${key}.profile`);
  yield* deviceCaChecks(table, key);
  yield* escrowChecks(table, key);
  const { client_certificate, client_key } = table.authorization ?? {};
  yield* bothOrNeither(`${key}.authorization`, { client_certificate, client_key });
  if (table.csrattrs !== undefined) yield* csrAttrsChecks(table.csrattrs, table.profile, key);
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

function* remoteChecks({ ocsp, profile }: CaConfig, key: string, who: string): Generator<Finding> {
  if (ocsp !== undefined)
    yield finding(`${key}.ocsp`, `is given, and ${who} answers OCSP itself (leave the section out)`);
  if (profile.allow_subject_change)
    yield finding(`${key}.profile.allow_subject_change`, `is true, and ${who} uses the names of the CSR (false)`);
  const names = { 'subject.template': profile.subject.template, 'san.add': profile.san.add };
  for (const [name, value] of Object.entries(names))
    if (value !== undefined)
      yield finding(`${key}.profile.${name}`, `is given, and ${who} uses the names of the CSR (leave it out)`);
  // A remote CA decides these with its own profile.
  const { backdate_seconds, policies, extensions, certificate_authority } = profile;
  const decided = { backdate_seconds, policies, extensions, certificate_authority };
  for (const [name, value] of Object.entries(decided))
    if (value !== undefined && !(Array.isArray(value) && value.length === 0))
      yield finding(`${key}.profile.${name}`, `is given, and the profile of ${who} decides it (leave it out)`);
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
    if (allowed !== undefined && !allowed.some((other) => attributeType(other) === attributeType(type)))
      yield finding(
        `${key}.subject.required`,
        `"${type}" is required and not allowed (a type that is in allowed)`,
        `${key}.subject.allowed`,
      );
  for (const type of Object.keys(patterns)) {
    const reason = checkAttributeName(type);
    if (reason !== undefined) yield finding(`${key}.subject.patterns`, `${reason} (${ATTRIBUTE_ALLOWED})`);
  }
  for (const text of profile.san.add ?? [])
    if (profile.san.dns_underscore !== true && /^dns:[^{}]*_|^dns:.*\}[^{}]*_/.test(text))
      yield finding(
        `${key}.san.add`,
        `"${text}" contains "_" (a name without it, or dns_underscore = true)`,
        `${key}.san.dns_underscore`,
      );
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
  if (driverOf(ca).archivesKeys?.(ca) === true) return;
  yield finding(
    `${key}.profile.key_escrow`,
    'is true, and there is no key recovery authority (false, or kra_urls of a CA behind Dogtag PKI)',
    `${key}.dogtag.kra_urls`,
    `${key}.driver`,
  );
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
      const reason = checkAttributeName(type);
      if (reason !== undefined) yield finding(`${key}.subject[${index}]`, `${reason} (${ATTRIBUTE_ALLOWED})`);
    }
  }
}

/** Checks on `[[label]]` tables, and between labels of one CA. */
function* furtherLabelChecks(config: Config): Generator<Finding> {
  const { ca, label } = config;
  for (const [index, { ca: wanted }] of label.entries()) {
    const key = `label[${index}].ca`;
    const of = ca.find((table) => table.label === wanted);
    if (of === undefined) yield finding(key, `"${wanted}" is not a CA (the label of one of the [[ca]] tables)`, 'ca');
    else if (driverOf(of).remote !== undefined)
      yield finding(
        key,
        `"${wanted}" has the remote driver "${of.driver}", which has one profile only (a CA whose key this server has)`,
      );
  }
  const labels = labelsOf(config);
  for (const { key, table, of } of labels) {
    const { label: own } = of ?? table;
    const siblings = labels
      .filter((sibling) => (sibling.of ?? sibling.table).label === own)
      .map((sibling) => sibling.table.label);
    for (const wanted of table.profile.renewal_labels ?? [])
      if (!siblings.includes(wanted))
        yield finding(
          `${key}.profile.renewal_labels`,
          `"${wanted}" is not a label of the same CA (${siblings.join(', ')})`,
          'label',
          `${key}.ca`,
        );
  }
}

/** Checks on a profile's `policies` and `extensions`. The schema rejects what is never allowed. */
function* extensionChecks({ policies, extensions }: ProfileConfig, key: string): Generator<Finding> {
  const twice = firstRepeated(policies.map(({ oid }) => oid));
  if (twice !== undefined) yield finding(`${key}.policies`, `${twice} occurs twice (each policy once)`);
  const seen = new Set<string>();
  for (const [index, { oid, value, from }] of extensions.entries()) {
    const place = `${key}.extensions[${index}]`;
    if (seen.has(oid)) yield finding(`${place}.oid`, `${oid} occurs twice (each extension once)`);
    seen.add(oid);
    if ((value === undefined) === (from === undefined))
      yield finding(
        place,
        `has ${value === undefined ? 'neither value nor from' : 'both value and from'} (value = "hex of the DER", or from = "csr")`,
        `${place}.value`,
        `${place}.from`,
      );
    if (from !== undefined && oid === OID.microsoftSid)
      yield finding(
        `${place}.from`,
        `is "csr", and ${oid} names an account of a domain, which anybody could then claim (leave it out)`,
        `${place}.oid`,
      );
  }
}
