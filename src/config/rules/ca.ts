import { attributeType } from '../../pki/x509/attribute-types.ts';
import { labelsOf, type ConfiguredLabel } from '../labels.ts';
import type { Finding } from './finding.ts';
import { furtherLabelChecks } from './labels.ts';
import { extensionChecks } from './profile-extensions.ts';
import { OPERATION_NAMES } from '../operation-names.ts';
import { checkSubjectKey, SUBJECT_KEY_ALLOWED } from '../schema/csrattrs.ts';
import type { CaConfig, Config, CsrAttrsConfig, Pkcs11CaConfig, ProfileConfig } from '../schema.ts';

/** The checks on the `[[ca]]` and `[[label]]` tables. */
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
    if (one.driver === 'dogtag') {
      yield* dogtagChecks(one, key);
      yield* dogtagNameChecks(one, key);
      yield* dogtagProfileChecks(one, key);
    }
  }
}

/** The checks on what is said of each label. */
function* ruleChecks(one: CaConfig, key: string): Generator<Finding> {
  if (one.approvals > 1 && one.approval === 'auto')
    yield {
      key: `${key}.approvals`,
      message: `is ${one.approvals}, and approval is "auto", so that nobody is asked (approval = "manual")`,
      about: [`${key}.approval`],
    };
  yield* profileChecks(one.profile, `${key}.profile`);
  yield* extensionChecks(one.profile, `${key}.profile`);
  yield* escrowChecks(one, key);
  yield* authorizationChecks(one, `${key}.authorization`);
  if (one.csrattrs !== undefined) yield* csrAttrsChecks(one.csrattrs, one.profile, key);
}

function* nameChecks(labels: readonly ConfiguredLabel[]): Generator<Finding> {
  const seen = new Set<string>();
  for (const { nameKey: key, table } of labels) {
    const { label } = table;
    if (seen.has(label)) yield { key, message: `"${label}" is there twice (a label for each CA)` };
    seen.add(label);
    if (OPERATION_NAMES.some((name) => name === label))
      yield { key, message: `"${label}" is the name of an operation (another label)` };
  }
}

function* defaultChecks(labels: readonly ConfiguredLabel[]): Generator<Finding> {
  const [first, ...more] = labels.filter(({ table }) => table.default);
  const about = labels.map(({ key }) => `${key}.default`);
  if (first === undefined) yield { key: 'ca', message: 'none is the default (default = true in exactly one)', about };
  for (const { key } of more)
    yield {
      key: `${key}.default`,
      message: `is true, and so is ${first?.key ?? ''}.default (default = true in exactly one)`,
      about,
    };
}

function* pkcs11Checks(pkcs11: Pkcs11CaConfig['pkcs11'], key: string): Generator<Finding> {
  const exclusive = [
    ['token_label', pkcs11.token_label, 'slot', pkcs11.slot],
    ['key_label', pkcs11.key_label, 'key_id', pkcs11.key_id],
  ] as const;
  for (const [one, oneValue, other, otherValue] of exclusive) {
    if ((oneValue === undefined) !== (otherValue === undefined)) continue;
    yield {
      key: `${key}.${one}`,
      message: `${oneValue === undefined ? 'is missing, and so is' : 'is given, and so is'} ${other} (one of the two)`,
      about: [`${key}.${other}`],
    };
  }
}

function* dogtagChecks({ ocsp, profile }: CaConfig, key: string): Generator<Finding> {
  if (ocsp !== undefined)
    yield { key: `${key}.ocsp`, message: 'is given, and Dogtag answers OCSP itself (leave the section out)' };
  if (profile.allow_subject_change)
    yield {
      key: `${key}.profile.allow_subject_change`,
      message: "is true, and Dogtag goes by the CSR's own names (false)",
    };
}

/** What a CA elsewhere decides by a profile of its own. */
function* dogtagProfileChecks({ profile }: CaConfig, key: string): Generator<Finding> {
  const given = {
    backdate_seconds: profile.backdate_seconds !== undefined,
    policies: profile.policies.length > 0,
    extensions: profile.extensions.length > 0,
  };
  for (const [name, isGiven] of Object.entries(given))
    if (isGiven)
      yield {
        key: `${key}.profile.${name}`,
        message: 'is given, and the profile of Dogtag decides it (leave it out)',
      };
}

/** A CA that takes names from the CSR cannot be given others. */
function* dogtagNameChecks({ profile }: CaConfig, key: string): Generator<Finding> {
  const given = { 'subject.template': profile.subject.template, 'san.add': profile.san.add };
  for (const [name, value] of Object.entries(given))
    if (value !== undefined)
      yield {
        key: `${key}.profile.${name}`,
        message: "is given, and Dogtag goes by the CSR's own names (leave it out)",
      };
}

function* profileChecks(profile: ProfileConfig, key: string): Generator<Finding> {
  if (profile.validity_days > profile.max_validity_days)
    yield {
      key: `${key}.validity_days`,
      message: `is more than max_validity_days (at most ${profile.max_validity_days})`,
      about: [`${key}.max_validity_days`],
    };
  if (profile.validity_seconds !== undefined && profile.validity_seconds > profile.max_validity_days * 86_400)
    yield {
      key: `${key}.validity_seconds`,
      message: `is more than max_validity_days (at most ${profile.max_validity_days * 86_400})`,
      about: [`${key}.max_validity_days`],
    };
  const { backdate_seconds = 60, validity_seconds } = profile;
  if (validity_seconds !== undefined && backdate_seconds * 2 > validity_seconds)
    yield {
      key: `${key}.backdate_seconds`,
      message: `is more than half of validity_seconds (at most ${Math.floor(validity_seconds / 2)})`,
      about: [`${key}.validity_seconds`],
    };
  const { required, allowed, patterns } = profile.subject;
  for (const type of required)
    if (allowed !== undefined && !allowed.some((one) => attributeType(one) === attributeType(type)))
      yield {
        key: `${key}.subject.required`,
        message: `"${type}" is required and not allowed (a type that is in allowed)`,
        about: [`${key}.subject.allowed`],
      };
  for (const type of Object.keys(patterns)) {
    const reason = checkSubjectKey(type);
    if (reason !== undefined) yield { key: `${key}.subject.patterns`, message: `${reason} (${SUBJECT_KEY_ALLOWED})` };
  }
  for (const kind of profile.san.required)
    if (!profile.san.allowed.includes(kind))
      yield {
        key: `${key}.san.required`,
        message: `"${kind}" is required and not allowed (a kind that is in allowed)`,
        about: [`${key}.san.allowed`],
      };
}

function* escrowChecks(ca: CaConfig, key: string): Generator<Finding> {
  if (ca.profile.key_escrow !== true) return;
  if (ca.driver === 'dogtag' && ca.dogtag.kra_urls.length > 0) return;
  yield {
    key: `${key}.profile.key_escrow`,
    message: 'is true, and there is no key recovery authority (false, or kra_urls of a CA behind Dogtag PKI)',
    about: [`${key}.dogtag.kra_urls`, `${key}.driver`],
  };
}

function* authorizationChecks({ authorization }: CaConfig, key: string): Generator<Finding> {
  if (authorization === undefined) return;
  const { client_certificate, client_key } = authorization;
  if ((client_certificate === undefined) === (client_key === undefined)) return;
  const [given, missing] =
    client_key === undefined ? ['client_certificate', 'client_key'] : ['client_key', 'client_certificate'];
  yield {
    key: `${key}.${given}`,
    message: `is given without ${missing} (both, or neither)`,
    about: [`${key}.${missing}`],
  };
}

function* csrAttrsChecks(csrattrs: CsrAttrsConfig, profile: ProfileConfig, ca: string): Generator<Finding> {
  const key = `${ca}.csrattrs`;
  if (csrattrs.key_type !== undefined && !profile.key_types.includes(csrattrs.key_type))
    yield {
      key: `${key}.key_type`,
      message: `"${csrattrs.key_type}" is not in the profile's key_types (${profile.key_types.join(', ')})`,
      about: [`${ca}.profile.key_types`],
    };
  if (csrattrs.subject.length > 0 && !csrattrs.template)
    yield {
      key: `${key}.subject`,
      message: 'is given, and template is false (template = true: a subject stands in the template only)',
      about: [`${key}.template`],
    };
  for (const [index, rdn] of csrattrs.subject.entries()) {
    if (Object.keys(rdn).length === 0)
      yield { key: `${key}.subject[${index}]`, message: 'is empty (one attribute or more)' };
    for (const type of Object.keys(rdn)) {
      const reason = checkSubjectKey(type);
      if (reason !== undefined)
        yield { key: `${key}.subject[${index}]`, message: `${reason} (${SUBJECT_KEY_ALLOWED})` };
    }
  }
}
