/** What `estuary client status` and `run` load, which keeps them fast and small. The tests measure neither time nor memory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { certsOnly } from '../../src/pki/cms/cms.ts';
import { runAny } from '../support/command.ts';
import { makeEstCa, mayEnroll } from '../support/est-ca.ts';
import { csrOf, sendStatus } from '../support/est-stand-in.ts';
import { clientFolder } from '../support/estuary-client.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const HOOK = `import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
process.on('exit', () => process.stderr.write(loaded.join('\\n')));
`;

const FORBIDDEN = ['node:http', 'node:https', 'node:tls', 'src/http/', 'src/store/', '/typebox/', '/fastify/'];

/** @param urls what was loaded, one URL per line. @returns these, and the names of the modules in each file of the build */
function modules(urls: string): string {
  const sources = urls.split('\n').map((url) => {
    const map = url.startsWith('file:') ? `${fileURLToPath(url)}.map` : '';
    return existsSync(map) ? /"sources":\[[^\]]*\]/.exec(readFileSync(map, 'utf8'))?.[0] : url;
  });
  return sources.join('\n');
}

function expectModules(urls: string, used: string): void {
  const loaded = modules(urls);
  expect(loaded).toContain(used);
  for (const module of FORBIDDEN) expect(loaded).not.toContain(module);
}

const server = { url: 'https://localhost:1', system_trust_anchors: true };

test('estuary client status loads no HTTP, no TLS and nothing of the server', async () => {
  const hook = folder.file('hook.mjs');
  writeFileSync(hook, HOOK);
  const { config } = clientFolder(folder.path, 'status', server, { subject: 'CN=a' });
  const args = ['--import', hook, SERVER, 'client', 'status', '--config', config];
  const { code, stdout, output } = await runAny(NODE, args);
  expect([code, stdout.toString()]).toEqual([1, 'status: missing\n']);
  expectModules(output, 'src/client/status.ts');
});

test('estuary client run loads neither: it starts a process for each step, against a server that answers 503, then 202, then in chunks', async () => {
  const est = await makeEstCa();
  let answered = 0;
  const standIn = await est.start({
    async simpleenroll(request) {
      if (!mayEnroll(request)) return;
      answered += 1;
      if (answered <= 2) return sendStatus(request, answered === 1 ? 503 : 202, { 'Retry-After': '1' });
      const body = certsOnly([await est.issue(csrOf(request))]).toString('base64');
      request.response.writeHead(200, { 'Content-Type': 'application/pkcs7-mime; smime-type=certs-only' });
      request.response.write(body.slice(0, 99));
      return request.response.end(body.slice(99));
    },
  });
  writeFileSync(folder.file('otp'), 'secret');
  const hook = folder.file('run.mjs');
  // The child process inherits it, and writes to another file.
  const target = `${JSON.stringify(folder.file('loaded-'))} + process.argv[3]`;
  const write = `import { writeFileSync } from 'node:fs';\nconst target = ${target};\n`;
  writeFileSync(hook, `${write}${HOOK.replace('process.stderr.write(', 'writeFileSync(target, ')}`);
  const { path, config } = clientFolder(
    folder.path,
    'run',
    { url: standIn.url, ca_fingerprint: est.fingerprint },
    { subject: 'CN=a', otp_file: folder.file('otp') },
  );
  const child = spawn(NODE, ['--import', hook, SERVER, 'client', 'run', '--config', config], { stdio: 'ignore' });
  const gone = once(child, 'exit');
  await until('the daemon has a certificate', () => existsSync(join(path, 'live')));
  child.kill('SIGTERM');
  expect([await gone, answered]).toEqual([[0, null], 3]);
  await standIn.stop();
  expectModules(readFileSync(folder.file('loaded-run'), 'utf8'), 'src/client/keep-up.ts');
});
