import { failed } from '../../errors.ts';
import { buildName, parseDistinguishedName } from '../../pki/x509/name.ts';
import type { AttributeTypeAndValue, Name } from '../../pki/x509/name.ts';
import { UPPER_BOUNDS } from '../../pki/x509/upper-bounds.ts';
import { makePrincipal, parsePrincipal } from './principal.ts';
import type { Principal } from './principal.ts';
import { InputError } from '../../pki/input-error.ts';

/** The part of the `[gssapi]` section that the mapping needs. */
export interface PrincipalMappingConfig {
  /** `HTTP/<hostname>@<REALM>`. */
  readonly service_principal?: string | undefined;
  /** Kerberos principal → RFC 4514 subject. */
  readonly principal_mapping?: Readonly<Record<string, string>> | undefined;
  /** RFC 4514 subject with placeholders in its values. */
  readonly default_template?: string | undefined;
}

/** Something wrong in the section, for a refused configuration. */
export interface MappingProblem {
  /** Below `gssapi`, e.g. `default_template`. */
  readonly key: string;
  readonly problem: string;
}

/** The outcome for one principal: its subject, or why it has none (for the log). */
export type Mapped = { readonly subject: Name } | { readonly unmapped: string };

const PLACEHOLDERS = ['principal', 'primary', 'instance', 'realm'] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];
const PLACEHOLDER = /\{([^{}]*)\}/g;

/** RFC 8062 §3: whoever asks gets a ticket of this name, so it says nothing about the sender. */
const ANONYMOUS = 'WELLKNOWN';

interface Template {
  /** Parsed, with markers where the principal's parts go. */
  readonly rdns: Name['rdns'];
  readonly markers: RegExp;
  readonly uses: ReadonlySet<Placeholder>;
}

/** `gssapi.principal_mapping` and `gssapi.default_template`: which subject a Kerberos principal's certificate gets. */
export class PrincipalMapping {
  readonly #table: ReadonlyMap<string, Name>;
  readonly #template: Template | undefined;
  readonly #realm: string | undefined;

  /** @throws EstuaryError 500 `GSSAPI_MISCONFIGURED` on the first problem that {@link checkPrincipalMapping} reports */
  constructor(config: PrincipalMappingConfig) {
    const [problem] = checkPrincipalMapping(config);
    if (problem !== undefined) throw failed('GSSAPI_MISCONFIGURED', `gssapi.${problem.key}: ${problem.problem}`);
    this.#table = new Map(
      Object.entries(config.principal_mapping ?? {}).map(([principal, subject]) => [
        canonical(parsePrincipal(principal)),
        parseDistinguishedName(subject),
      ]),
    );
    this.#template = config.default_template === undefined ? undefined : readTemplate(config.default_template);
    this.#realm = config.service_principal === undefined ? undefined : parsePrincipal(config.service_principal).realm;
  }

  /** The subject of an authenticated principal: the table's entry, else the template filled in. */
  map(principal: Principal): Mapped {
    const entry = this.#table.get(canonical(principal));
    if (entry !== undefined) return { subject: entry };
    if (this.#template === undefined) return { unmapped: 'no entry in principal_mapping, and no default_template' };
    return this.#fill(this.#template, principal);
  }

  /** What a principal is called here: its primary, where neither an instance nor another realm could make it somebody else's. */
  nameOf({ components, realm, text }: Principal): string {
    const [primary, ...more] = components;
    return primary !== undefined && more.length === 0 && realm === this.#realm ? primary : text;
  }

  #fill(template: Template, principal: Principal): Mapped {
    const ambiguous = this.#ambiguity(template, principal);
    if (ambiguous !== undefined) return { unmapped: ambiguous };
    const [primary = '', instance = ''] = principal.components;
    const values = { principal: principal.text, primary, instance, realm: principal.realm };
    try {
      return { subject: fillTemplate(template, values) };
    } catch (error) {
      if (error instanceof InputError) return { unmapped: `default_template gives no valid name: ${error.message}` };
      throw error;
    }
  }

  /**
   * Why this principal could be taken for another one by a template that leaves parts of it out: `alice@PARTNER.TEST`
   * or `alice/admin@EXAMPLE.TEST` must not become the CN=alice of alice@EXAMPLE.TEST.
   */
  #ambiguity({ uses }: Template, { components, realm }: Principal): string | undefined {
    if (components[0] === ANONYMOUS) return 'an anonymous or well-known principal needs an entry in principal_mapping';
    if (uses.has('principal')) return undefined;
    if (!uses.has('realm') && realm !== this.#realm)
      return 'of another realm than the service, and default_template has no {realm}';
    if (components.length > 2) return 'more than two name components, and default_template has no {principal}';
    if (uses.has('instance') && components.length < 2) return 'no instance, and default_template has {instance}';
    if (uses.has('primary') && !uses.has('instance') && components.length > 1)
      return 'has an instance, and default_template has no {instance}';
    return undefined;
  }
}

/** Every problem of the section's mapping, for the start-up check. */
export function checkPrincipalMapping(config: PrincipalMappingConfig): MappingProblem[] {
  const problems: MappingProblem[] = [];
  const attempt = (key: string, check: () => void): void => {
    try {
      check();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push({ key, problem: error.message });
    }
  };
  const seen = new Set<string>();
  for (const [principal, subject] of Object.entries(config.principal_mapping ?? {})) {
    const key = `principal_mapping.${JSON.stringify(principal)}`;
    attempt(key, () => {
      const text = canonical(readKey(principal));
      if (seen.has(text)) throw new InputError('names the same principal as another entry');
      seen.add(text);
      checkSubject(parseSubject(subject));
    });
  }
  const { default_template: template } = config;
  if (template !== undefined) attempt('default_template', () => readTemplate(template));
  return problems;
}

function canonical({ components, realm }: Principal): string {
  return makePrincipal(components, realm).text;
}

function readKey(text: string): Principal {
  try {
    return parsePrincipal(text);
  } catch (error) {
    throw new InputError(`not a principal of the form name@REALM: ${error instanceof Error ? error.message : ''}`);
  }
}

function parseSubject(text: string): Name {
  const name = parseDistinguishedName(text);
  if (name.rdns.length === 0) throw new InputError('an empty subject');
  return name;
}

function checkSubject(name: Name): void {
  for (const attribute of name.rdns.flat()) checkValue(attribute);
}

/** What makes a value malformed in a certificate, although it could be encoded. */
function checkValue({ type, text }: { type: string; text: string }): void {
  if (text === '') throw new InputError('an empty value');
  if (/\p{Cc}/u.test(text)) throw new InputError('a control character');
  const bound = UPPER_BOUNDS.get(type);
  if (bound !== undefined && Array.from(text).length > bound)
    throw new InputError(`a value of more than ${bound} characters`);
}

function knownPlaceholder(name: string): Placeholder {
  const placeholder = PLACEHOLDERS.find((known) => known === name);
  if (placeholder !== undefined) return placeholder;
  throw new InputError(`unknown placeholder {${name}} (allowed: {${PLACEHOLDERS.join('}, {')}})`);
}

/**
 * Parses the template as RFC 4514 with a marker for each placeholder, so that its structure is fixed at start-up and a
 * placeholder outside of an attribute value is refused. The marker is letters only, which every string type takes.
 */
function readTemplate(text: string): Template {
  const uses = new Set<Placeholder>();
  let mark = 'X';
  while (text.includes(mark)) mark += 'X';
  const marked = text.replace(PLACEHOLDER, (_, name: string) => {
    const placeholder = knownPlaceholder(name);
    uses.add(placeholder);
    return `${mark}${placeholder}${mark}`;
  });
  if (/[{}]/.test(marked)) throw new InputError('a brace that belongs to no placeholder');
  const { rdns } = parseSubject(marked);
  if (!uses.has('principal') && !uses.has('primary') && !uses.has('instance'))
    throw new InputError('every principal would get the same subject (use {principal}, {primary} or {instance})');
  const template = { rdns, uses, markers: new RegExp(`${mark}(${PLACEHOLDERS.join('|')})${mark}`, 'g') };
  fillTemplate(template, { principal: 'x', primary: 'x', instance: 'x', realm: 'x' });
  return template;
}

/**
 * Puts the principal's parts into the parsed attribute values, never into RFC 4514 text: whatever characters they
 * hold, the number of RDNs and attributes and their types are the template's.
 */
function fillTemplate({ rdns, markers }: Template, values: Readonly<Record<Placeholder, string>>): Name {
  const fill = ({ type, tag, text }: AttributeTypeAndValue): { type: string; tag: number; text: string } => {
    const filled = text.replace(markers, (_, name: string) => values[knownPlaceholder(name)]);
    checkValue({ type, text: filled });
    return { type, tag, text: filled };
  };
  return buildName(rdns.map((rdn) => rdn.map(fill)));
}
