/** Values in filters and DNs. */

/** Inserts escaped values at their `{placeholders}`, whatever `$` or placeholder they contain. */
export const inserted = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replaceAll(
    /\{(\w+)\}/g,
    (whole, name: string) => (Object.hasOwn(values, name) ? values[name] : whole) ?? whole,
  );

const hex = (octets: Buffer): string => octets.toString('hex').replace(/../g, '\\$&');

/** RFC 4514 §2.4: hex-escapes every octet except letters and digits. */
export const escapedInDn = (value: string): string =>
  value.replace(/[^A-Za-z0-9]+/g, (part) => hex(Buffer.from(part, 'utf8')));

/** RFC 4515 §3. */
export const escapedInFilter = (value: string): string =>
  value.replace(/[\0()*\\]/g, (character) => hex(Buffer.from(character)));
