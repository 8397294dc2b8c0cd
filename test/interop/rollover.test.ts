/** RFC 7030 §4.1.3: real clients accept cacerts with OldWithOld, OldWithNew and NewWithOld, and can enroll. */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { parseCertsOnly } from '../../src/pki/cms/cms.ts';
import { compileEstClient } from '../support/bouncycastle.ts';
import { run, runAny, runText } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { ESTCLIENT, requires } from '../support/requires.ts';
import { rollRoot } from '../support/rollover.ts';

let server: Quickstart;
/** Base64 of DER, as the PEM files have it. */
let offered: string[];

beforeAll(async () => {
  server = await startRolled('ca/rollover.pem');
});
afterAll(() => server.stop());

function startRolled(chain: string): Promise<Quickstart> {
  return startQuickstart({
    configure(toml, dir) {
      offered = ['ca/new-issuing.pem', ...rollRoot(dir)].map((name) => base64(join(dir, name)));
      return toml
        .replace('certificate = "ca/issuing.pem"', 'certificate = "ca/new-issuing.pem"')
        .replace('chain = "ca/root.pem"', `chain = "${chain}"`);
    },
  });
}

const base64 = (path: string): string =>
  parsePemCertificates(readFileSync(path, 'latin1'))
    .map(({ der }) => der.toString('base64'))
    .join();
const client = (name: string): string => server.file(`client/${name}`);

test.skipIf(!requires('pki', 'openssl'))('strongSwan pki trusts what it can link to the root it knows', async () => {
  const trust = ['--cacert', server.file('ca/root.pem'), '--caout', client('strongswan.pem')];
  await run('pki', ['--estca', '--url', `https://${server.host}`, ...trust, '--outform', 'pem', '--force']);
  const names = readdirSync(client('')).filter((name) => name.startsWith('strongswan'));
  const stored = names.map((name) => base64(client(name)));
  expect(stored.sort()).toEqual([...offered].sort());
});

test.skipIf(!requires('bouncycastle', 'bouncycastleTls', 'openssl'))(
  'Bouncy Castle',
  async () => {
    const estClient = await compileEstClient(client(''));
    const out = client('bc.pem');
    await run('java', estClient('cacerts', { server: server.host, ca: server.file('ca/root.pem'), out }));
    expect(base64(out).split(',').sort()).toEqual([...offered].sort());
  },
  150_000,
);

test.skipIf(!requires('curl', 'openssl'))('openssl builds the path from the answer, from either root', async () => {
  const trust = ['--noproxy', '*', '--cacert', server.file('ca/root.pem')];
  const answer = await runText('curl', ['-sS', ...trust, `${server.est}/cacerts`]);
  const certificates = parseCertsOnly(Buffer.from(answer, 'base64')).map((der) => new X509Certificate(der));
  const [roots, others] = [true, false].map((wanted) =>
    certificates.filter((certificate) => certificate.verify(certificate.publicKey) === wanted).map(String),
  );
  expect(roots).toHaveLength(2);
  writeFileSync(client('others.pem'), (others ?? []).join(''));
  for (const [i, root] of (roots ?? []).entries()) {
    writeFileSync(client(`root-${i}.pem`), root);
    const path = ['-CAfile', client(`root-${i}.pem`), '-untrusted', client('others.pem')];
    for (const leaf of ['ca/new-issuing.pem', 'ca/issuing.pem'])
      expect(await runText('openssl', ['verify', ...path, server.file(leaf)])).toContain('OK');
  }
});

// It verifies each certificate with all self-signed ones at once, and OpenSSL tells two roots of one name apart only
// where they have an authorityKeyIdentifier; these have none.
test.skipIf(!requires('estclient', 'openssl'))('libest estclient, where the old root is left out', async () => {
  const rolled = await startRolled('ca/links.pem');
  onTestFinished(() => rolled.stop());
  const out = rolled.file('client/libest');
  mkdirSync(out, { recursive: true });
  const [host = '', port = ''] = rolled.host.split(':');
  const env = { EST_OPENSSL_CACERT: rolled.file('ca/root.pem') };
  const { output } = await runAny(ESTCLIENT, ['-g', '-s', host, '-p', port, '-o', out, '-v', '-w', '60'], { env });
  const file = join(out, 'cacert-0-0.pkcs7');
  expect(existsSync(file), output).toBe(true);
  const certificates = parseCertsOnly(Buffer.from(readFileSync(file, 'latin1'), 'base64'));
  const oldRoot = base64(rolled.file('ca/root.pem'));
  expect(certificates.map((der) => der.toString('base64'))).toEqual(offered.filter((root) => root !== oldRoot));
});
