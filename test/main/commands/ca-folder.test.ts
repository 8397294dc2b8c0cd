/** A PKI of two tiers in folders (`ca init --root --issuing`, `ca sign`, `ca renew`), verified by OpenSSL, GnuTLS and NSS. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePemCertificates, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { openssl, opensslText, temporaryFolder } from '../../support/openssl.ts';
import { requires } from '../../support/requires.ts';
import { estuary as command } from '../../support/local-command.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder.remove());

const estuary = (...args: readonly string[]) => command(args);

/** Folders of a new root and issuing CA. */
async function twoTiers(name: string, ...options: readonly string[]): Promise<{ root: string; issuing: string }> {
  const [root, issuing] = [folder.file(`${name}-root`), folder.file(`${name}-issuing`)];
  expect(await estuary('ca', 'init', '--root', root, '--issuing', issuing, ...options)).toMatchObject({
    code: 0,
    err: '',
  });
  return { root, issuing };
}

function certificate(file: string): Certificate {
  const [first] = parsePemCertificates(readFileSync(file, 'latin1'));
  if (first === undefined) throw new Error(`${file} contains no certificate`);
  return first;
}

/** A leaf that the issuing CA signs without any rule. */
function leaf(issuing: string, san: string): string {
  const file = `${issuing}/${san.replace(/[^a-z0-9]/gi, '-')}.pem`;
  const extensions = `${file}.ext`;
  writeFileSync(
    extensions,
    `subjectAltName = ${san}\nextendedKeyUsage = clientAuth\nkeyUsage = critical,digitalSignature\n`,
  );
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'];
  const csr = openssl(['req', '-new', ...key, '-subj', '/O=Leaf']);
  const issuer = ['-CA', `${issuing}/issuing.pem`, '-CAkey', `${issuing}/issuing.key`];
  openssl(['x509', '-req', ...issuer, '-days', '30', '-extfile', extensions, '-out', file], csr);
  return file;
}

const verified = (root: string, issuing: string, file: string): string =>
  opensslText(['verify', '-x509_strict', '-CAfile', `${root}/root.pem`, '-untrusted', `${issuing}/issuing.pem`, file]);

describe('ca init --root --issuing', () => {
  test('creates a root and an issuing CA that OpenSSL accepts above a leaf', async () => {
    const { root, issuing } = await twoTiers(
      'plain',
      '--subject',
      'CN=Devices,O=Example',
      '--root-subject',
      'CN=Root,O=Example',
    );
    expect(readdirSync(root).sort()).toEqual(['root.key', 'root.pem']);
    expect(readdirSync(issuing).sort()).toEqual(['chain.pem', 'issuing.key', 'issuing.pem']);
    expect(readFileSync(`${issuing}/chain.pem`)).toEqual(readFileSync(`${root}/root.pem`));
    for (const key of [`${root}/root.key`, `${issuing}/issuing.key`]) expect(statSync(key).mode & 0o777).toBe(0o600);
    expect(certificate(`${issuing}/issuing.pem`)).toMatchObject({ isCa: true, pathLength: 0 });
    expect(verified(root, issuing, leaf(issuing, 'DNS:a.example.com'))).toContain('OK');
  });

  test.skipIf(!requires('gnutls'))('GnuTLS accepts the path', async () => {
    const { root, issuing } = await twoTiers(
      'gnutls',
      '--permitted-dns',
      'example.com',
      '--permitted-ip',
      '10.0.0.0/8',
    );
    const chain = folder.file('gnutls-chain.pem');
    writeFileSync(
      chain,
      readFileSync(leaf(issuing, 'DNS:a.example.com'), 'utf8') + readFileSync(`${issuing}/issuing.pem`, 'utf8'),
    );
    const out = execFileSync('certtool', ['--verify', '--load-ca-certificate', `${root}/root.pem`, '--infile', chain]);
    expect(out.toString()).toContain('The certificate is trusted');
  });

  test.skipIf(!requires('certutil'))('NSS accepts the path', async () => {
    const { root, issuing } = await twoTiers('nss', '--permitted-dns', 'example.com');
    const database = folder.file('nss-database');
    mkdirSync(database);
    const certutil = (...args: string[]): string =>
      execFileSync('certutil', ['-d', `sql:${database}`, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }).toString();
    certutil('-N', '--empty-password');
    certutil('-A', '-n', 'root', '-t', 'CT,,', '-i', `${root}/root.pem`);
    certutil('-A', '-n', 'issuing', '-t', ',,', '-i', `${issuing}/issuing.pem`);
    certutil('-A', '-n', 'leaf', '-t', ',,', '-i', leaf(issuing, 'DNS:a.example.com'));
    expect(certutil('-V', '-n', 'leaf', '-u', 'C')).toContain('certificate is valid');
  });

  test('name constraints hold for the permitted names, and exclude the other kinds (RFC 5280 §4.2.1.10)', async () => {
    const { root, issuing } = await twoTiers(
      'constrained',
      '--permitted-dns',
      'example.com',
      '--permitted-ip',
      '10.1.0.0/16',
    );
    for (const inside of ['DNS:a.example.com', 'DNS:example.com', 'IP:10.1.2.3'])
      expect(verified(root, issuing, leaf(issuing, inside)), inside).toContain('OK');
    for (const outside of [
      'DNS:a.example.org',
      'IP:10.2.0.1',
      'IP:fd00::1',
      'email:a@example.com',
      'URI:https://example.com/',
    ])
      expect(() => verified(root, issuing, leaf(issuing, outside)), outside).toThrow(
        /permitted subtree|excluded subtree/,
      );
  });

  test('one kind of permitted names excludes the other kinds', async () => {
    const { root, issuing } = await twoTiers('only-dns', '--permitted-dns', 'example.com');
    expect(() => verified(root, issuing, leaf(issuing, 'IP:10.2.0.1'))).toThrow(/excluded subtree/);
    const { root: other, issuing: addresses } = await twoTiers('only-ip', '--permitted-ip', 'fd00::/8');
    expect(verified(other, addresses, leaf(addresses, 'IP:fd00::1'))).toContain('OK');
    for (const outside of ['DNS:a.example.com', 'IP:10.2.0.1'])
      expect(() => verified(other, addresses, leaf(addresses, outside)), outside).toThrow(
        /permitted subtree|excluded subtree/,
      );
  });

  test('overwrites nothing', async () => {
    const { root, issuing } = await twoTiers('twice');
    const before = readFileSync(`${root}/root.key`);
    const again = await estuary('ca', 'init', '--root', root, '--issuing', issuing);
    expect(again).toMatchObject({ code: 1, out: '' });
    expect(again.err).toContain(`${root}/root.key already exists`);
    expect(readFileSync(`${root}/root.key`)).toEqual(before);
  });

  test.each([
    [['--root', 'ROOT'], '--root DIR and --issuing DIR go together'],
    [['--root', 'ROOT', '--issuing', 'ISSUING', '--config', 'x'], 'do not apply'],
    [['--root', 'ROOT', '--issuing', 'ISSUING', '--path-length', '-1'], '--path-length'],
    [
      ['--root', 'ROOT', '--issuing', 'ISSUING', '--permitted-ip', '10.0.0.1/8'],
      'address bits beyond its prefix length',
    ],
    [['--root', 'ROOT', '--issuing', 'ISSUING', '--permitted-ip', '10.0.0.0/33'], 'is not a network'],
    [['--root', 'ROOT', '--issuing', 'ISSUING', '--permitted-dns', '*.example.com'], 'is not a host name'],
    [['--root', 'ROOT', '--issuing', 'ISSUING', '--subject', 'CN=A', '--root-subject', 'CN=A'], 'must differ'],
    [['--permitted-dns', 'example.com', '--config', 'x', '--ca', 'y'], 'needs --root DIR'],
  ])('%j is refused', async (args, reason) => {
    const paths = args.map((arg) => (/^[A-Z]+$/.test(arg) ? folder.file(`refused-${arg}`) : arg));
    const done = await estuary('ca', 'init', ...paths);
    expect(done).toMatchObject({ code: 2, out: '' });
    expect(done.err).toContain(reason);
    expect(existsSync(folder.file('refused-ROOT'))).toBe(false);
  });
});

describe('ca sign', () => {
  function request(name: string): string {
    const file = folder.file(`${name}.csr`);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'];
    openssl(['req', '-new', ...key, '-subj', `/CN=${name}`, '-out', file]);
    return file;
  }

  test("signs an issuing CA's request with its subject and key, within the issuer's validity", async () => {
    const { root } = await twoTiers('signer', '--root-days', '100');
    const out = folder.file('signed.pem');
    const done = await estuary(
      'ca',
      'sign',
      '--issuer',
      root,
      '--csr',
      request('Below'),
      '--out',
      out,
      '--path-length',
      '1',
    );
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(opensslText(['verify', '-x509_strict', '-CAfile', `${root}/root.pem`, out])).toContain('OK');
    const issued = certificate(out);
    expect(issued).toMatchObject({ isCa: true, pathLength: 1 });
    expect(issued.notAfter).toEqual(certificate(`${root}/root.pem`).notAfter);
  });

  test('an issuer with the path length 0 signs no CA', async () => {
    const { issuing } = await twoTiers('last');
    const out = folder.file('never.pem');
    const done = await estuary('ca', 'sign', '--issuer', issuing, '--csr', request('Too deep'), '--out', out);
    expect(done).toMatchObject({ code: 1, out: '' });
    expect(done.err).toContain('has the path length 0, so it cannot sign CA certificates');
    expect(existsSync(out)).toBe(false);
  });

  test('a CSR with a wrong signature is rejected', async () => {
    const { root } = await twoTiers('strict');
    const file = request('Forged');
    const der = openssl(['req', '-in', file, '-outform', 'DER']);
    der.writeUInt8(der.readUInt8(der.length - 1) ^ 1, der.length - 1);
    writeFileSync(file, der);
    const done = await estuary('ca', 'sign', '--issuer', root, '--csr', file, '--out', folder.file('forged.pem'));
    expect(done).toMatchObject({ code: 1, out: '' });
    expect(done.err).toContain('signature');
  });
});

describe('ca renew', () => {
  test.each([false, true])('keeps name, path length and constraints; new key: %s', async (isNewKey) => {
    const { root, issuing } = await twoTiers(`renewed-${isNewKey}`, '--permitted-dns', 'example.com', '--days', '10');
    const file = `${issuing}/issuing.pem`;
    const former = certificate(file);
    const old = leaf(issuing, 'DNS:old.example.com');
    const options = isNewKey ? ['--new-key'] : [];
    const done = await estuary('ca', 'renew', '--issuer', root, '--ca', issuing, ...options);
    expect(done).toMatchObject({ code: 0, err: '' });
    const renewed = certificate(file);
    expect(renewed.subject.der).toEqual(former.subject.der);
    expect(renewed.pathLength).toBe(0);
    expect(renewed.notAfter.getTime()).toBeGreaterThan(former.notAfter.getTime());
    expect(renewed.spki.equals(former.spki)).toBe(!isNewKey);
    const kept = `${issuing}/issuing.${former.serialNumber}.pem`;
    expect(certificate(kept).der).toEqual(former.der);
    expect(existsSync(kept.replace(/pem$/, 'key'))).toBe(isNewKey);
    expect(verified(root, issuing, leaf(issuing, 'DNS:new.example.com'))).toContain('OK');
    expect(() => verified(root, issuing, leaf(issuing, 'DNS:a.example.org'))).toThrow(/permitted subtree/);
    const above = isNewKey ? kept : file;
    expect(opensslText(['verify', '-CAfile', `${root}/root.pem`, '-untrusted', above, old])).toContain('OK');
    // The folder is still a CA folder.
    expect(await estuary('ca', 'renew', '--issuer', root, '--ca', issuing)).toMatchObject({ code: 0 });
  });

  test('a root is not renewed, and a foreign key is refused', async () => {
    const { root, issuing } = await twoTiers('misused');
    expect((await estuary('ca', 'renew', '--issuer', root, '--ca', root)).err).toContain('is self-signed');
    writeFileSync(`${issuing}/issuing.key`, readFileSync(`${root}/root.key`));
    expect((await estuary('ca', 'renew', '--issuer', root, '--ca', issuing)).err).toContain(
      'does not belong to issuing.pem',
    );
  });
});

test('a root key can be encrypted, and signs with its passphrase only', async () => {
  const passphrase = folder.file('passphrase');
  writeFileSync(passphrase, 'correct horse\n');
  const { root, issuing } = await twoTiers('encrypted', '--root-passphrase-file', passphrase);
  expect(readFileSync(`${root}/root.key`, 'utf8')).toContain('BEGIN ENCRYPTED PRIVATE KEY');
  const renew = ['ca', 'renew', '--issuer', root, '--ca', issuing];
  const refused = await estuary(...renew);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('is encrypted') as string]);
  writeFileSync(folder.file('other'), 'battery staple');
  expect(await estuary(...renew, '--issuer-passphrase-file', folder.file('other'))).toMatchObject({ code: 1 });
  expect(await estuary(...renew, '--issuer-passphrase-file', passphrase)).toMatchObject({ code: 0, err: '' });
});
