/** A Kerberos principal (RFC 4120 §6.2): name components and a realm. */
import type { Problem } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { failed } from '../../errors.ts';
import { InputError } from '../../pki/input-error.ts';
import { subjectProblem } from '../../pki/x509/attribute-syntax.ts';
import { NoFittingValue, SubjectTemplate } from '../../pki/x509/name-template.ts';
import { type Name, parseDistinguishedName, parseName } from '../../pki/x509/name.ts';

export interface Principal {
  /**
   * As Kerberos libraries print it, such as `host/a.example.com@EXAMPLE.COM`; `\` escapes `/`, `@` and `\` in a
   * component.
   */
  readonly text: string;
  /** At least one, without escapes. */
  readonly components: readonly string[];
  readonly realm: string;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '0': '\0' };
const CONTROLS: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\b': '\\b', '\0': '\\0' };

/**
 * Parses a printed principal (MIT's krb5_unparse_name).
 * @throws InputError without a realm, or with an empty component or an incomplete escape
 */
export function parsePrincipal(text: string): Principal {
  const components: string[] = [];
  let inRealm = false;
  let part = '';
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    if (character === '\\') {
      const escaped = text.charAt((i += 1));
      if (escaped === '') throw new InputError('an escape without a character');
      part += ESCAPES[escaped] ?? escaped;
    } else if (inRealm ? character === '@' : character === '@' || character === '/') {
      if (inRealm) throw new InputError('more than one realm');
      inRealm = character === '@';
      components.push(part);
      part = '';
    } else part += character;
  }
  if (!inRealm || part === '') throw new InputError('no realm');
  if (components.includes('')) throw new InputError('an empty name component');
  return { text, components, realm: part };
}

function escape(part: string, special: RegExp): string {
  return part.replace(special, '\\$&').replace(/[\n\t\b\0]/g, (control) => CONTROLS[control] ?? control);
}

/** A principal from unescaped components and a realm. */
export function makePrincipal(components: readonly string[], realm: string): Principal {
  const name = components.map((component) => escape(component, /[\\/@]/g)).join('/');
  return { text: `${name}@${escape(realm, /[\\@]/g)}`, components, realm };
}

/** The keys for the mapping: Kerberos principal → RFC 4514 subject, and a subject with placeholders. */
export type PrincipalMappingConfig = Partial<
  Pick<Config['gssapi'], 'service_principal' | 'principal_mapping' | 'default_template' | 'fold_case' | 'directory'>
>;

/** The form of `fold_case`: the name in lower case, the realm in upper case. */
const foldedPrincipal = ({ components, realm }: Principal): Principal =>
  makePrincipal(
    components.map((component) => folded(component, 'toLowerCase', 'toUpperCase')),
    folded(realm, 'toUpperCase', 'toLowerCase'),
  );

type CaseMethod = 'toLowerCase' | 'toUpperCase';

/** Only letters with one other case: a KDC tells the Kelvin sign from the k that is its lower case. */
const folded = (text: string, to: CaseMethod, back: CaseMethod): string =>
  Array.from(text, (letter) => (letter[to]()[back]() === letter ? letter[to]() : letter)).join('');

/** A principal's subject, or why it has none (for the log). */
type Mapped = { readonly subject: Name } | { readonly unmapped: string };

const PLACEHOLDERS: ReadonlySet<string> = new Set(['principal', 'primary', 'instance', 'realm']);

/** RFC 8062 §3: anyone can get a ticket with this name, so it identifies nobody. */
const ANONYMOUS = 'WELLKNOWN';

/** Maps Kerberos principals to subjects (`gssapi.principal_mapping`, `gssapi.default_template`). */
export class PrincipalMapping {
  readonly #table: ReadonlyMap<string, Name>;
  readonly #template: SubjectTemplate | undefined;
  readonly #realm: string | undefined;
  readonly #config: PrincipalMappingConfig;

  /** @throws EstuaryError 500 `GSSAPI_MISCONFIGURED` for the first problem of {@link checkPrincipalMapping} */
  constructor(config: PrincipalMappingConfig) {
    const [problem] = checkPrincipalMapping(config);
    if (problem !== undefined) throw failed('GSSAPI_MISCONFIGURED', `gssapi.${problem.key}: ${problem.message}`);
    this.#table = new Map(
      Object.entries(config.principal_mapping ?? {}).map(([principal, subject]) => [
        mappingKey(parsePrincipal(principal), config),
        readSubject(subject),
      ]),
    );
    this.#config = config;
    this.#template = config.default_template === undefined ? undefined : readTemplate(config.default_template);
    this.#realm =
      config.service_principal === undefined ? undefined : this.written(parsePrincipal(config.service_principal)).realm;
  }

  /** The principal as `fold_case` has it written. */
  written(principal: Principal): Principal {
    return this.#config.fold_case === true ? foldedPrincipal(principal) : principal;
  }

  /** The subject of an authenticated principal: the table's entry, or the filled template. */
  map(principal: Principal): Mapped {
    const entry = this.#table.get(mappingKey(principal, this.#config));
    if (entry !== undefined) return { subject: entry };
    if (this.#template === undefined) return { unmapped: 'no entry in principal_mapping, and no default_template' };
    return this.#fill(this.#template, principal);
  }

  /** The principal's short name: its primary, if it has no instance and no foreign realm. */
  nameOf({ components, realm, text }: Principal): string {
    const [primary, ...more] = components;
    return primary !== undefined && more.length === 0 && realm === this.#realm ? primary : text;
  }

  #fill(template: SubjectTemplate, principal: Principal): Mapped {
    const ambiguous = this.#ambiguity(template, principal);
    if (ambiguous !== undefined) return { unmapped: ambiguous };
    const [primary = '', instance = ''] = principal.components;
    const values = new Map(Object.entries({ principal: principal.text, primary, instance, realm: principal.realm }));
    try {
      return { subject: template.fill((name) => [values.get(name) ?? '']) };
    } catch (error) {
      if (error instanceof NoFittingValue)
        return { unmapped: `default_template produces an invalid name: ${error.message}` };
      throw error;
    }
  }

  /**
   * Why a template that omits parts of this principal could confuse it with another: `alice@PARTNER.TEST` or
   * `alice/admin@EXAMPLE.TEST` must not become the CN=alice of alice@EXAMPLE.TEST.
   */
  #ambiguity({ placeholders }: SubjectTemplate, { components, realm }: Principal): string | undefined {
    const uses = new Set(placeholders);
    if (components[0] === ANONYMOUS) return 'an anonymous or well-known principal needs an entry in principal_mapping';
    if (uses.has('principal')) return undefined;
    if (!uses.has('realm') && realm !== this.#realm)
      return 'it is in another realm than the service, and default_template has no {realm}';
    if (components.length > 2) return 'it has more than two name components, and default_template has no {principal}';
    if (uses.has('instance') && components.length < 2) return 'it has no instance, and default_template has {instance}';
    if (!uses.has('instance') && components.length > 1)
      return 'it has an instance, and default_template has no {instance}';
    return undefined;
  }
}

/** Keys are relative to `gssapi`, such as `default_template`. */
export function checkPrincipalMapping(config: PrincipalMappingConfig): Problem[] {
  const problems: Problem[] = [];
  const attempt = (key: string, check: () => void): void => {
    try {
      check();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push({ key, message: error.message });
    }
  };
  const seen = new Set<string>();
  for (const [principal, subject] of Object.entries(config.principal_mapping ?? {})) {
    const key = `principal_mapping.${JSON.stringify(principal)}`;
    attempt(key, () => {
      const text = mappingKey(readKey(principal), config);
      if (seen.has(text)) throw new InputError('names the same principal as another entry');
      seen.add(text);
      readSubject(subject);
    });
  }
  const { default_template: template } = config;
  if (template !== undefined) attempt('default_template', () => readTemplate(template));
  return problems;
}

/** How principals are compared: names of a directory without case. */
function mappingKey(principal: Principal, { fold_case, directory }: PrincipalMappingConfig): string {
  const { components, realm } = principal;
  const ignoresCase = fold_case === true || directory !== undefined;
  return (ignoresCase ? foldedPrincipal(principal) : makePrincipal(components, realm)).text;
}

function readKey(text: string): Principal {
  try {
    return parsePrincipal(text);
  } catch (error) {
    throw new InputError(`not a principal of the form name@REALM: ${error instanceof Error ? error.message : ''}`);
  }
}

function readSubject(text: string): Name {
  // Parse again: the encoder has sorted the attributes of each RDN.
  const name = parseName(parseDistinguishedName(text).der);
  if (name.rdns.length === 0) throw new InputError('an empty subject');
  const problem = subjectProblem(name);
  if (problem !== undefined) throw new InputError(`a subject that ${problem}`);
  return name;
}

function readTemplate(text: string): SubjectTemplate {
  const template = new SubjectTemplate(text);
  const unknown = template.placeholders.find((name) => !PLACEHOLDERS.has(name));
  if (unknown !== undefined)
    throw new InputError(`unknown placeholder {${unknown}} (allowed: {${[...PLACEHOLDERS].join('}, {')}})`);
  if (template.placeholders.every((name) => name === 'realm'))
    throw new InputError('every principal would get the same subject (use {principal}, {primary} or {instance})');
  return template;
}
