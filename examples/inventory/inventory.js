// An inventory that decides over requests: answers the POST of [ca.authorization] from a JSON file, which is read anew for each.
//
//   node inventory.js --port 8443 --cert tls/server.pem --key tls/server.key --token inventory/token --inventory inventory.json
//
// docs/reference/authorization.md has the schemas of request and answer.
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { parseArgs } from 'node:util';

const text = { type: 'string' };
const { values } = parseArgs({ options: { port: text, cert: text, key: text, token: text, inventory: text } });

const digest = (value) => createHash('sha256').update(value).digest();
const expected = digest(`Bearer ${readFileSync(values.token, 'utf8').trim()}`);

const server = createServer(
  { cert: readFileSync(values.cert), key: readFileSync(values.key) },
  async (call, answer) => {
    try {
      if (!timingSafeEqual(digest(call.headers.authorization ?? ''), expected)) return answer.writeHead(401).end();
      call.setEncoding('utf8');
      const request = JSON.parse((await call.toArray()).join(''));
      answer.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(decide(request)));
    } catch (error) {
      // After any other response, the server answers its client with 503.
      process.stderr.write(`${error.message}\n`);
      answer.writeHead(500).end();
    }
  },
);
server.listen(Number(values.port), () => process.stdout.write(`listening on ${server.address().port}\n`));

function decide({ operation, subject }) {
  const inventory = new Map(Object.entries(JSON.parse(readFileSync(values.inventory, 'utf8'))));
  // The subject is bound to the requester by est.toml: CN=<client_id>, or that of the certificate that is renewed.
  const name = /^CN=([\w-]+)$/.exec(subject)?.[1];
  const entry = inventory.get(name);
  if (entry === undefined) return { allow: false, reason: `${subject} is not in the inventory` };
  if (entry.retired) return { allow: false, reason: `${name} is retired` };
  // A renewal keeps its names.
  if (operation === 'simplereenroll') return { allow: true };
  return { allow: true, sans: entry.sans, validity_days: entry.validity_days };
}
