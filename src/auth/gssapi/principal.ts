/** A Kerberos principal (RFC 4120 §6.2): name components and a realm. */
import { InputError } from '../../pki/input-error.ts';

export interface Principal {
  /** As Kerberos libraries print it, e.g. `host/a.example.com@EXAMPLE.COM`; `\` escapes `/`, `@` and `\` inside a component. */
  readonly text: string;
  /** Without escapes; one or more. */
  readonly components: readonly string[];
  readonly realm: string;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '0': '\0' };
const CONTROLS: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\b': '\\b', '\0': '\\0' };

/**
 * Reads a principal in its printed form (MIT's krb5_unparse_name).
 *
 * @throws InputError when there is no realm, an empty component, or an escape without a character
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

/** The principal of these components (without escapes) and realm, with its printed form. */
export function makePrincipal(components: readonly string[], realm: string): Principal {
  const name = components.map((component) => escape(component, /[\\/@]/g)).join('/');
  return { text: `${name}@${escape(realm, /[\\@]/g)}`, components, realm };
}
