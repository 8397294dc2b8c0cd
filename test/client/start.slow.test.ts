/** What `estuary client status` loads, which lets it start in under 300 ms. The test measures no time. */
import { writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { clientFolder } from '../support/estuary-client.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { NODE, SERVER } from '../support/server-process.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const HOOK = `import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
process.on('exit', () => process.stderr.write(loaded.join('\\n')));
`;

test('estuary client status loads no HTTP, no TLS and nothing of the server', async () => {
  const hook = folder.file('hook.mjs');
  writeFileSync(hook, HOOK);
  const server = { url: 'https://localhost', system_trust_anchors: true };
  const { config } = clientFolder(folder.path, 'status', server, { subject: 'CN=a' });
  const args = ['--import', hook, SERVER, 'client', 'status', '--config', config];
  const { code, stdout, output } = await runAny(NODE, args);
  expect([code, stdout.toString()]).toEqual([1, 'status: missing\n']);
  expect(output).toContain('client/status.js');
  for (const module of ['node:http', 'node:https', 'node:tls', '/dist/http/', '/dist/store/', 'typebox', 'fastify'])
    expect(output).not.toContain(module);
});
