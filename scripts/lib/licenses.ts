/** The licenses allowed in distributed packages, and the licenses of a package. */

/** SPDX identifiers: none of these licenses requires more of redistributors than to keep the notices. */
export const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]);

/** A component of a CycloneDX list, as far as it matters here. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX: identifiers, or expressions with AND and OR. Empty: it says nothing. */
  readonly licenses: readonly string[];
}

/** @throws TypeError when it is no CycloneDX list */
export function componentsOf(sbom: unknown): Component[] {
  return listIn(sbom, 'components').map((component) => ({
    name: textIn(component, 'name'),
    version: textIn(component, 'version'),
    licenses: hasOwn(component, 'licenses') ? listIn(component, 'licenses').map(licenseOf) : [],
  }));
}

/** Components whose license is missing or not allowed. */
export function refused(components: readonly Component[]): Component[] {
  return components.filter(({ licenses }) => licenses.length === 0 || !licenses.every(isAllowed));
}

/** A text of one line for each package, by license. */
export function report(components: readonly Component[]): string {
  const lines = components.map(({ name, version, licenses }) => `${licenses.join(', ') || 'none'}\t${name} ${version}`);
  return `${lines.sort().join('\n')}\n`;
}

/** Of `A OR B` one is enough, of `A AND B` it takes both; parentheses group. */
export function isAllowed(expression: string): boolean {
  const inner = /\(([^()]*)\)/.exec(expression);
  if (inner !== null) {
    const [whole, group = ''] = inner;
    return isAllowed(expression.replace(whole, isAllowed(group) ? 'MIT' : 'refused'));
  }
  return expression
    .split(/ OR /i)
    .some((choice) => choice.split(/ AND /i).every((license) => ALLOWED.has(license.trim())));
}

function licenseOf(entry: unknown): string {
  if (hasOwn(entry, 'expression')) return textIn(entry, 'expression');
  const license: unknown = typeof entry === 'object' && entry !== null ? Reflect.get(entry, 'license') : undefined;
  return hasOwn(license, 'id') ? textIn(license, 'id') : textIn(license, 'name');
}

function hasOwn(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name);
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  if (!Array.isArray(list)) throw new TypeError(`no list "${name}"`);
  return list;
}

function textIn(value: unknown, name: string): string {
  const text: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  if (typeof text !== 'string') throw new TypeError(`no text "${name}"`);
  return text;
}
