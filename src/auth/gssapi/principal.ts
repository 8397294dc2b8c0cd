/** A Kerberos principal (RFC 4120 §6.2): name components and a realm. */
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
 * @throws RangeError when there is no realm, an empty component, or an escape without a character
 */
export function parsePrincipal(text: string): Principal {
  const parts = [''];
  let realmAt: number | undefined;
  for (let i = 0; i < text.length; i++) {
    let character = text.charAt(i);
    if (character === '\\') {
      const escaped = text.charAt((i += 1));
      if (escaped === '') throw new RangeError('an escape without a character');
      character = ESCAPES[escaped] ?? escaped;
    } else if (character === '@') {
      if (realmAt !== undefined) throw new RangeError('more than one realm');
      realmAt = parts.push('') - 1;
      continue;
    } else if (character === '/' && realmAt === undefined) {
      parts.push('');
      continue;
    }
    parts[parts.length - 1] += character;
  }
  const realm = realmAt === undefined ? undefined : parts[realmAt];
  const components = parts.slice(0, realmAt);
  if (realm === undefined || realm === '') throw new RangeError('no realm');
  if (components.includes('')) throw new RangeError('an empty name component');
  return { text, components, realm };
}

function escape(part: string, special: RegExp): string {
  return part.replace(special, '\\$&').replace(/[\n\t\b\0]/g, (control) => CONTROLS[control] ?? control);
}

/** The principal of these components (without escapes) and realm, with its printed form. */
export function makePrincipal(components: readonly string[], realm: string): Principal {
  const name = components.map((component) => escape(component, /[\\/@]/g)).join('/');
  return { text: `${name}@${escape(realm, /[\\@]/g)}`, components, realm };
}
