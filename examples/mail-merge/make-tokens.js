// Reads recipients as CSV from standard input and writes them to standard output with a one-time password each, for a mail merge.
//
//   node make-tokens.js --url https://localhost:9444 --ca ca/root.pem --cert admin/client.pem --key admin/client.key < recipients.csv > letters.csv
//
// The column client_id is needed; expires_at, max_uses and ca are taken where they stand; any other column is passed on. Exit code 1: some rows have
// no token but an error; they alone can be sent again.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { parseArgs } from 'node:util';

const text = { type: 'string' };
const { values } = parseArgs({ options: { url: text, ca: text, cert: text, key: text } });
for (const name of ['url', 'ca', 'cert', 'key']) if (!values[name]) fail(`--${name} is missing`);

const agent = new Agent({
  keepAlive: true,
  ca: readFileSync(values.ca),
  cert: readFileSync(values.cert),
  key: readFileSync(values.key),
});

const [header, ...rows] = parseCsv(readFileSync(0, 'utf8').replace(/^\uFEFF/, ''));
if (!header?.includes('client_id')) fail('the first line names no column client_id');

write([...header.filter((name) => name !== 'expires_at'), 'token', 'expires_at', 'error']);
for (const row of rows) {
  const fields = Object.fromEntries(header.map((name, index) => [name, row[index] ?? '']));
  const { token = '', expires_at = '', error = '' } = await makeToken(fields);
  const passed = header.filter((name) => name !== 'expires_at').map((name) => fields[name]);
  write([...passed, token, expires_at, error]);
  if (error !== '') process.exitCode = 1;
}
agent.destroy();

/** The answer of POST /admin/otp, or what went wrong. */
function makeToken({ client_id, expires_at, max_uses, ca }) {
  const body = JSON.stringify({
    client_id,
    ...(expires_at ? { expires_at } : {}),
    ...(max_uses ? { max_uses: Number(max_uses) } : {}),
    ...(ca ? { ca } : {}),
  });
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const call = request(new URL('/admin/otp', values.url), { method: 'POST', agent, headers, timeout: 30_000 });
    call.on('timeout', () => call.destroy(new Error('no answer within 30 s')));
    call.on('error', (error) => resolve({ error: error.message }));
    call.on('response', async (answer) => {
      try {
        answer.setEncoding('utf8');
        const parsed = JSON.parse((await answer.toArray()).join(''));
        resolve(answer.statusCode === 201 ? parsed : { error: `${answer.statusCode} ${parsed.message}` });
      } catch (error) {
        resolve({ error: error.message });
      }
    });
    call.end(body);
  });
}

/** RFC 4180: fields in quotes may hold commas, line ends and doubled quotes. Empty lines are left out. */
function parseCsv(csv) {
  const rows = [];
  let row = [];
  for (const [, quoted, bare, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    if (row.some((field) => field !== '')) rows.push(row);
    row = [];
  }
  return rows;
}

function write(fields) {
  const cells = fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field));
  process.stdout.write(`${cells.join(',')}\r\n`);
}

function fail(message) {
  process.stderr.write(`make-tokens: ${message}\n`);
  process.exit(2);
}
