/** The lines of docs/guides/clients.md and docs/guides/rollover.md, as printed, each block in a separate folder. */
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../support/command.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { ESTCLIENT, requires, type Requirement } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';

/** The blocks of shell lines under a heading. */
function documented(file: string, heading: string): string[] {
  const [, after = ''] = readFileSync(join(ROOT, file), 'utf8').split(`\n## ${heading}\n`);
  const [section = ''] = after.split('\n## ');
  return [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block = '']) => block);
}

/** libest's client first, as its name is not its own. */
const PATH = [dirname(ESTCLIENT), process.env['PATH'] ?? ''].join(delimiter);

const shell = (cwd: string, lines: string, env: Readonly<Record<string, string>>): Promise<Buffer> =>
  run('bash', ['-euo', 'pipefail', '-c', lines], { cwd, env: { PATH, no_proxy: '*', ...env } });

interface Client {
  readonly heading: string;
  readonly needs: readonly Requirement[];
  /** The certificates that each block leaves. */
  readonly results: readonly (readonly string[])[];
}

const CLIENTS: readonly Client[] = [
  { heading: 'curl and openssl', needs: [], results: [['device', 'renewed']] },
  { heading: 'strongSwan `pki`', needs: ['pki'], results: [['device', 'next']] },
  { heading: 'libest `estclient`', needs: ['estclient'], results: [['device', 'renewed'], ['device']] },
  { heading: 'Bouncy Castle', needs: ['bouncycastle', 'bouncycastleTls'], results: [['device', 'next']] },
];

describe.skipIf(!requires('curl', 'openssl'))('docs/guides/clients.md', { timeout: 120_000 }, () => {
  let server: Quickstart;
  beforeAll(async () => {
    // As docs/guides/clients.md says of libest.
    server = await startQuickstart({ sections: '[serverkeygen]\nencryption = "optional"' });
  });
  afterAll(() => server.stop());

  describe.each(CLIENTS)('$heading', ({ heading, needs, results }) => {
    const blocks = documented('docs/guides/clients.md', heading);
    test('has as many blocks as are run here', () => {
      expect(blocks).toHaveLength(results.length);
    });
    test.skipIf(!requires(...needs)).each(results.map((names, index) => [index + 1, names] as const))(
      'block %i leaves %s',
      async (number, names) => {
        const folder = server.file(`client/${heading.replace(/\W+/g, '-')}-${number}`);
        mkdirSync(folder, { recursive: true });
        copyFileSync(server.file('ca/root.pem'), join(folder, 'ROOT.pem'));
        const [HOST = '', PORT = ''] = server.host.split(':');
        const PASSWORD = await server.createOtp('device-1');
        await shell(folder, blocks[number - 1] ?? '', { HOST, PORT, PASSWORD, ESTUARY: ROOT });
        for (const name of names) {
          const own = join(folder, `${name}.key`);
          const key = existsSync(own) ? own : join(folder, 'device.key');
          await server.check(join(folder, `${name}.pem`), { subject: 'CN=device-1', key });
        }
      },
    );
  });
});

describe.skipIf(!requires('openssl'))('docs/guides/rollover.md', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  test("the new root's certificate of the issuing CA has its key, and is good under the new root", async () => {
    const file = (name: string): string => folder.file(name);
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const root = ['req', '-x509', ...ec, '-subj', '/O=Example/CN=Example Root CA', '-days', '30'];
    openssl([...root, '-keyout', file('root.key'), '-out', file('root.pem')]);
    const own = ['-CA', file('root.pem'), '-CAkey', file('root.key')];
    const issuing = ['req', '-x509', ...ec, '-subj', '/O=Example/CN=Issuing', '-days', '20', ...own];
    openssl([...issuing, '-keyout', file('issuing.key'), '-out', file('issuing.pem')]);
    const [lines = '', ...more] = documented('docs/guides/rollover.md', 'A new root');
    expect(more).toEqual([]);
    await shell(folder.path, lines, {});
    await run('openssl', ['verify', '-x509_strict', '-CAfile', file('new-root.pem'), file('new-issuing.pem')]);
    const fields = (name: string): string =>
      openssl(['x509', '-in', file(name), '-noout', '-subject', '-pubkey']).toString();
    expect(fields('new-issuing.pem')).toBe(fields('issuing.pem'));
  });
});
