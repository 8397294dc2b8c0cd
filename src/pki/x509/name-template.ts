/**
 * Names derived from the requester: placeholders in patterns, and in templates of subjects and subjectAltNames.
 * Templates are parsed before values are inserted, so a value cannot change the structure of a name.
 */
import { OID } from '../der/oids.ts';
import { InputError } from '../input-error.ts';
import { subjectProblem } from './attribute-syntax.ts';
import { generalName, type GeneralName, SAN_KINDS, type SanKind, underscoreProblem } from './general-name.ts';
import { attributeType } from './attribute-types.ts';
import { buildName, parseDistinguishedName, parseName, type AttributeTypeAndValue, type Name } from './name.ts';

/** The requester's values for a placeholder (without braces); empty if it has none. */
export type PlaceholderValues = (placeholder: string) => readonly string[];

/** The requester has no suitable value for a placeholder. */
export class NoFittingValue extends Error {}

type Part = string | { readonly placeholder: string };

const SIMPLE: ReadonlySet<string> = new Set(['id', 'client_id', 'principal', 'primary', 'instance', 'realm']);
/** Kinds of the certificate's names that are placeholders. */
const CERTIFICATE_NAMES: ReadonlySet<string> = new Set(SAN_KINDS.filter((kind) => kind !== 'registered_id'));

export const PLACEHOLDERS_ALLOWED =
  '{id}, {client_id}, {principal}, {primary}, {instance}, {realm}, {cert.CN} or another attribute type, {cert.dns}, {cert.ip}, {cert.email}, {cert.uri}, {cert.upn}, {cert.hardware_module}, {cert.permanent_identifier}, {cert.srv}, {device.id}, {device.NAME}, {ldap.NAME}, {jwt.NAME}';

/** Why a placeholder is unknown; undefined if it is known. */
function placeholderProblem(name: string): string | undefined {
  const [, source, rest = ''] = /^(cert|device|ldap|jwt)\.(.+)$/s.exec(name) ?? [];
  const known =
    source === 'cert'
      ? CERTIFICATE_NAMES.has(rest) || attributeType(rest) !== undefined
      : source !== undefined || SIMPLE.has(name);
  return known ? undefined : `unknown placeholder {${name}}`;
}

function placeholder(name: string): { readonly placeholder: string } {
  const problem = placeholderProblem(name);
  if (problem !== undefined) throw new InputError(problem);
  return { placeholder: name };
}

// --- patterns --------------------------------------------------------------------------------------------------

/** A regular expression, or a literal text, with placeholders. */
export class NamePattern {
  readonly #parts: readonly Part[];
  /** Compiled once if there is no placeholder. */
  readonly #fixed: RegExp | undefined;

  /** @throws InputError for an unknown placeholder; SyntaxError for an invalid regular expression */
  constructor(pattern: string, isLiteral = false) {
    this.#parts = isLiteral
      ? templateParts(pattern).map((part) => (typeof part === 'string' ? quoted(part) : part))
      : patternParts(pattern);
    const sample = this.#source(() => ['x']) ?? '';
    // Compile it alone first: `a)|(b` would become valid inside the group.
    new RegExp(sample, 'u');
    this.#fixed = this.hasPlaceholder ? undefined : whole(sample);
  }

  get hasPlaceholder(): boolean {
    return this.#parts.some((part) => typeof part !== 'string');
  }

  /**
   * Whether the whole value matches. Any value of a placeholder may match; without one the pattern matches nothing.
   * @param lowerCase the value is in lower case
   */
  matches(value: string, values: PlaceholderValues, lowerCase = false): boolean {
    if (this.#fixed !== undefined) return this.#fixed.test(value);
    const source = this.#source((name) => values(name).map((value) => (lowerCase ? value.toLowerCase() : value)));
    return source !== undefined && whole(source).test(value);
  }

  #source(values: PlaceholderValues): string | undefined {
    let source = '';
    for (const part of this.#parts) {
      if (typeof part === 'string') source += part;
      else {
        const alternatives = values(part.placeholder).filter((value) => value !== '');
        if (alternatives.length === 0) return undefined;
        source += `(?:${alternatives.map(quoted).join('|')})`;
      }
    }
    return source;
  }
}

const whole = (source: string): RegExp => new RegExp(`^(?:${source})$`, 'u');

/** Escapes every character for a regular expression with the flag u. */
const quoted = (text: string): string =>
  text.replace(/[\\^$.*+?()[\]{}|/-]/g, (character) => (character === '-' ? '\\x2d' : `\\${character}`));

/** Quantifiers such as {2,3}, classes such as \p{Lu} and [{}] are not placeholders. */
function patternParts(pattern: string): Part[] {
  const parts: Part[] = [];
  const token = /\\[pPu]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|\{([A-Za-z][^{}]*)\}|[^]/gsu;
  let text = '';
  for (const [all, name] of pattern.matchAll(token)) {
    if (name === undefined) text += all;
    else {
      parts.push(text, placeholder(name));
      text = '';
    }
  }
  return [...parts, text].filter((part) => part !== '');
}

// --- templates -------------------------------------------------------------------------------------------------

const BRACES = /\{([^{}]*)\}/g;

/** @throws InputError */
function templateParts(text: string): Part[] {
  const parts: Part[] = text.split(BRACES).map((part, i) => (i % 2 === 1 ? placeholder(part) : part));
  if (parts.some((part) => typeof part === 'string' && /[{}]/.test(part))) throw new InputError('an unmatched brace');
  return parts.filter((part) => part !== '');
}

/** The single value of a placeholder. @throws NoFittingValue */
function single(name: string, values: PlaceholderValues): string {
  const [value, ...more] = values(name);
  if (value === undefined || value === '') throw new NoFittingValue(`the requester has no {${name}}`);
  if (more.length > 0) throw new NoFittingValue(`the requester has several values for {${name}}`);
  return value;
}

/** A certificate's subject: RFC 4514 with placeholders in its values. */
export class SubjectTemplate {
  readonly #rdns: Name['rdns'];
  readonly #marker: RegExp;
  /** Without braces, in template order. */
  readonly placeholders: readonly string[];

  /** @throws InputError */
  constructor(template: string) {
    // A mark of letters only, which every string type accepts, stands for each placeholder. Values replace it after
    // parsing.
    let mark = 'X';
    while (template.includes(mark)) mark += 'X';
    const names: string[] = [];
    const letters = (index: number): string => index.toString(2).replaceAll('0', 'a').replaceAll('1', 'b');
    const marked = template.replace(BRACES, (_, name: string) => {
      names.push(placeholder(name).placeholder);
      return `${mark}${letters(names.length - 1)}${mark}`;
    });
    if (/[{}]/.test(marked)) throw new InputError('an unmatched brace');
    this.#rdns = parseDistinguishedName(marked).rdns;
    if (this.#rdns.length === 0) throw new InputError('an empty subject');
    this.placeholders = names;
    this.#marker = new RegExp(`${mark}([ab]+)${mark}`, 'g');
    this.#built((_, type) => (type === OID.countryName ? 'XX' : 'x'));
  }

  /** @throws NoFittingValue if a placeholder has no value, several, or one that the attribute does not allow */
  fill(values: PlaceholderValues): Name {
    try {
      return this.#built((name) => single(name, values));
    } catch (error) {
      if (error instanceof InputError) throw new NoFittingValue(`the subject ${error.message}`);
      throw error;
    }
  }

  /** @throws InputError */
  #built(value: (name: string, type: string) => string): Name {
    const at = (letters: string): number => parseInt(letters.replaceAll('a', '0').replaceAll('b', '1'), 2);
    const fill = ({ type, tag, text }: AttributeTypeAndValue) => ({
      type,
      tag,
      text: text.replace(this.#marker, (_, letters: string) => value(this.placeholders[at(letters)] ?? '', type)),
    });
    // Parse again: the encoder has sorted the attributes of each RDN.
    const name = parseName(buildName(this.#rdns.map((rdn) => rdn.map(fill))).der);
    const problem = subjectProblem(name);
    if (problem !== undefined) throw new InputError(problem);
    return name;
  }
}

export const SAN_TEMPLATE_ALLOWED = `a kind and a name, such as "dns:{id}.example.com" (kinds: ${SAN_KINDS.join(', ')}, other:OID)`;

/** A subjectAltName with placeholders, such as `dns:{id}.example.com`. */
export class SanTemplate {
  readonly #kind: SanKind | 'other_name';
  readonly #underscores: boolean;
  readonly #parts: readonly Part[];

  /**
   * @param underscores whether a DNS name may contain them
   * @throws InputError
   */
  constructor(template: string, underscores = false) {
    const [, kind, text = ''] = /^([a-z_]+):(.+)$/s.exec(template) ?? [];
    const known = kind === 'other' ? 'other_name' : SAN_KINDS.find((name) => name === kind);
    if (known === undefined) throw new InputError('no kind of name at the start');
    this.#kind = known;
    this.#underscores = underscores;
    this.#parts = templateParts(text);
    const isWhole = this.#parts.length === 1 && typeof this.#parts[0] !== 'string';
    // A part of the DER cannot be checked without the value.
    if (known === 'other_name' && /:.*\{/s.test(text)) generalName(known, text.replace(/:.*$/s, ':0500'));
    else if (!isWhole) this.#named((_, before) => sample(known, before));
  }

  /** @throws NoFittingValue if a placeholder has no value, several, or one that is invalid for its kind */
  fill(values: PlaceholderValues): GeneralName {
    try {
      return this.#named((name) => single(name, values));
    } catch (error) {
      if (error instanceof InputError) throw new NoFittingValue(`a subjectAltName ${error.message}`);
      throw error;
    }
  }

  /** @throws InputError */
  #named(value: (name: string, before: string) => string): GeneralName {
    let text = '';
    for (const part of this.#parts) {
      if (typeof part === 'string') text += part;
      else {
        const replacement = value(part.placeholder, text);
        text += this.#parts.length === 1 ? replacement : inside(this.#kind, replacement, text);
      }
    }
    const name = generalName(this.#kind, text);
    const literal = this.#parts.map((part) => (typeof part === 'string' ? part : '')).join('');
    const problem =
      (this.#underscores ? undefined : underscoreProblem(name)) ??
      (this.#kind === 'dns' && text.includes('*') && !literal.includes('*') ? 'has a wildcard' : undefined);
    if (problem !== undefined) throw new InputError(problem);
    return name;
  }
}

const OID_PART = /^\d+(\.\d+)*$/;
const HEX = /^[0-9a-f]+$/i;

/** Values that cannot extend beyond one component of a name; after the colon of `OID:…` for a kind with one. */
const INSIDE: Readonly<Record<SanKind | 'other_name', RegExp>> = {
  // One label: no dots.
  dns: /^[A-Za-z0-9_-]+$/,
  email: /^[A-Za-z0-9!#$%&'*+\-=?^_`{|}~.]+$/,
  // RFC 3986 §2.3: unreserved.
  uri: /^[A-Za-z0-9\-._~]+$/,
  ip: HEX,
  upn: /^[^@]+$/,
  hardware_module: HEX,
  permanent_identifier: /^.+$/s,
  srv: /^[A-Za-z0-9-]+$/,
  registered_id: OID_PART,
  other_name: HEX,
};

const hasOid = (kind: SanKind | 'other_name'): boolean =>
  kind === 'hardware_module' || kind === 'permanent_identifier' || kind === 'other_name';

/** A value that makes a template of this kind valid, if its literal parts are. */
function sample(kind: SanKind | 'other_name', before: string): string {
  if (kind === 'registered_id' || (hasOid(kind) && !before.includes(':'))) return '1.2';
  if (kind === 'ip') return '1';
  return kind === 'hardware_module' ? '00' : 'x';
}

function inside(kind: SanKind | 'other_name', value: string, before: string): string {
  const allowed = hasOid(kind) && !before.includes(':') ? OID_PART : INSIDE[kind];
  if (!allowed.test(value)) throw new InputError(`cannot be made from ${JSON.stringify(value.slice(0, 80))}`);
  return value;
}

/** The attribute type of `{cert.TYPE}`, or the kind of name; undefined for other placeholders. */
export function certificatePlaceholder(
  name: string,
): { readonly attribute: string } | { readonly kind: SanKind } | undefined {
  if (!name.startsWith('cert.')) return undefined;
  const rest = name.slice('cert.'.length);
  const kind = SAN_KINDS.find((kind) => kind === rest && CERTIFICATE_NAMES.has(kind));
  return kind === undefined ? { attribute: attributeType(rest) ?? OID.commonName } : { kind };
}
