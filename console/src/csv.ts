/** CSV (RFC 4180) as far as a preview needs it; the server reads it for itself. */

export interface Csv {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** @param most rows to read; the rest is counted by nobody */
export function parseCsv(text: string, most = Infinity): Csv {
  const lines: string[][] = [];
  let fields: string[] = [];
  const pattern = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/gy;
  const body = text === '' || text.endsWith('\n') ? text.replace(/^\ufeff/, '') : `${text.replace(/^\ufeff/, '')}\n`;
  while (pattern.lastIndex < body.length && lines.length <= most) {
    const match = pattern.exec(body);
    if (match === null) break;
    const [, field = '', end] = match;
    fields.push(/^"[^]*"$/.test(field) ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end === ',') continue;
    if (fields.length > 1 || fields[0] !== '') lines.push(fields);
    fields = [];
  }
  const [header = [], ...rows] = lines;
  return { header, rows };
}

const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export const writeCsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((fields) => `${fields.map(cell).join(',')}\r\n`).join('');
