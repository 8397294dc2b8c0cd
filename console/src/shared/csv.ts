/** Reads and writes CSV (RFC 4180) for previews. The server parses files independently. */

export interface Csv {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function parseCsv(text: string): Csv {
  const lines: string[][] = [];
  let fields: string[] = [];
  const pattern = /[ \t]*("(?:[^"]|"")*"(?=[ \t]*(?:[,\r\n]|$))|[^,\r\n]*)[ \t]*(,|\r?\n|$)/gy;
  const body = text === '' || text.endsWith('\n') ? text.replace(/^\ufeff/, '') : `${text.replace(/^\ufeff/, '')}\n`;
  while (pattern.lastIndex < body.length) {
    const match = pattern.exec(body);
    if (match === null) break;
    const [, field = '', end] = match;
    fields.push(/^"[^]*"$/.test(field) ? field.slice(1, -1).replaceAll('""', '"') : field.trim());
    if (end === ',') continue;
    if (fields.some((field) => field !== '')) lines.push(fields);
    fields = [];
  }
  const [header = [], ...rows] = lines;
  return { header, rows };
}

const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export const writeCsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((fields) => `${fields.map(cell).join(',')}\r\n`).join('');
