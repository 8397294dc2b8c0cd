import { expect, test } from 'vitest';
import { cellsOf, checkHeader, recordOf } from '../../../../src/http/admin/bulk/columns.ts';
import { csvLine, parseCsv } from '../../../../src/http/admin/bulk/csv.ts';
import { wantsCsv } from '../../../../src/http/admin/bulk/bulk.ts';

const fields = (text: string) => [...parseCsv(text)].map((record) => record.problem ?? record.fields);

test.each<[string, string, unknown]>([
  [
    'CRLF between records, and at the end',
    'a,b\r\n1,2\r\n',
    [
      ['a', 'b'],
      ['1', '2'],
    ],
  ],
  [
    'LF alone, none at the end',
    'a,b\n1,2',
    [
      ['a', 'b'],
      ['1', '2'],
    ],
  ],
  ['CR at the end of the file', 'a\r', [['a']]],
  [
    'semicolons, as spreadsheets write them in many languages',
    'a;"b;c"\r\n1,5; x \r\n',
    [
      ['a', 'b;c'],
      ['1,5', 'x'],
    ],
  ],
  ['a semicolon in a header with commas', 'a;b,c', [['a;b', 'c']]],
  ['a byte order mark', '\ufeffa,b', [['a', 'b']]],
  ['empty fields', ',x,\r\n', [['', 'x', '']]],
  ['empty lines', 'a\r\n\r\n\nb\n', [['a'], ['b']]],
  [
    'rows without any value',
    'a,b\n,\n , ,\t\n""\nc,d\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  ['commas, quotes and line ends in quotes', '"a,b","c""d","e\r\nf"\r\ng', [['a,b', 'c"d', 'e\r\nf'], ['g']]],
  ['white space around values without quotes', ' a ,\t" b " , c d ', [['a', ' b ', 'c d']]],
  ['a CR inside of a field', 'a\rb,c', [['a\rb', 'c']]],
  ['an unclosed quote', 'a\n"b\nc', [['a'], 'an unclosed quote']],
  ['a quote inside of a plain field', 'a"b,c\nd', ['a quote in an unquoted field', ['d']]],
  ['text after a quoted field', '"a"b,c\nd', ['text after a quoted field', ['d']]],
  ['nothing', '', []],
])('RFC 4180: %s', (_, text, expected) => {
  expect(fields(text)).toEqual(expected);
});

test('RFC 4180: what is written is read as it was', () => {
  const rows = [
    ['plain', '', 'a,b', '"', 'x\ny', '\r', ' ', '=1+1'],
    [' a', 'b ', '', '\t', '', '', '', ''],
  ];
  expect(fields(rows.map(csvLine).join(''))).toEqual(rows);
});

test('each row has the line of the input at which it begins, from 1', () => {
  const text = '\ufeffa,b\r\n1,2\r\n\r\n,\r\n"x\ny",3\r\n4,5';
  expect([...parseCsv(text)].map(({ line }) => line)).toEqual([1, 2, 5, 7]);
});

test.each(['TRUE', 'True', 'true'])('a spreadsheet writes %s', (cell) => {
  expect(recordOf(['enabled'], [cell], COLUMNS)).toEqual({ enabled: true });
  expect(recordOf(['enabled'], [cell.replace(/true/i, 'FALSE')], COLUMNS)).toEqual({ enabled: false });
});

const COLUMNS = {
  named: { id: 'text', uses: 'integer', enabled: 'boolean', 'match.issuer': 'text' },
  prefixes: ['attributes.'],
} as const;

test('a row is the record that JSON would hold; empty cells are absent', () => {
  const header = ['id', 'uses', 'enabled', 'match.issuer', 'attributes.a.b', 'attributes.__proto__'];
  checkHeader(header, COLUMNS);
  expect(recordOf(header, ['x', '3', 'true', 'CN=a', 'v', ''], COLUMNS)).toEqual({
    id: 'x',
    uses: 3,
    enabled: true,
    match: { issuer: 'CN=a' },
    attributes: { 'a.b': 'v' },
  });
  expect(recordOf(header, ['', 'three', 'yes', '', '', ''], COLUMNS)).toEqual({ uses: 'three', enabled: 'yes' });
  const record = { id: 'x', enabled: false, uses: null, match: null, attributes: { 'a.b': 'v' } };
  expect(cellsOf(header, record)).toEqual(['x', '', 'false', '', 'v', '']);
});

test.each([[['id', 'nope']], [['id', 'attributes.']], [['id', 'match.nope']], [['id', 'toString']], [['id', 'id']]])(
  'columns that there are not, or twice: %j',
  (header) => {
    expect(() => checkHeader(header, COLUMNS)).toThrow(expect.objectContaining({ code: 'COLUMN_UNKNOWN' }) as Error);
  },
);

test.each<[string | undefined, boolean]>([
  ['text/csv', true],
  ['TEXT/CSV; charset=utf-8', true],
  ['application/json, text/csv;q=0.5', false],
  ['text/csv, application/json;q=0.9', true],
  ['text/csv;q=0', false],
  ['*/*', false],
  [undefined, false],
])('Accept: %s', (accept, expected) => {
  expect(wantsCsv({ headers: accept === undefined ? {} : { accept } })).toBe(expected);
});
