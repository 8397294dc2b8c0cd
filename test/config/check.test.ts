/**
 * What `--check` finds in the files that a configuration names.
 *
 * Longer than other files: the problems share the files, which OpenSSL makes once.
 */
import { certsOnly } from '../../src/pki/cms/cms.ts';
import { encodePem, parsePem } from '../../src/pki/der/pem.ts';
import { keyUsage, makeCa, makeCertificate } from '../support/certificates.ts';
import { generateKeyPairSync } from 'node:crypto';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { certifyNewKey } from '../support/openssl.ts';
import { configFolder, PARTS, toml } from './support.ts';
import type { ConfigFolder } from './support.ts';

const CA_EXTENSIONS = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
const LEAF = 'basicConstraints=critical,CA:FALSE';
const DAY = 86_400_000;

let folder: ConfigFolder;
/** Contents of good files by name: a test that breaks one finds them all restored. */
const good = new Map<string, Buffer>();

beforeAll(async () => {
  folder = await configFolder();
  for (const name of ['tls', 'ca', 'admin']) await folder.write(`${name}/x`, '');
  issue('ca/root', '/CN=Root', undefined, CA_EXTENSIONS);
  issue('ca/issuing', '/CN=Issuing', 'ca/root', CA_EXTENSIONS);
  issue('admin/ca', '/CN=Admins', undefined, CA_EXTENSIONS);
  issue('tls/server', '/CN=localhost', 'ca/issuing', [
    'subjectAltName=DNS:localhost',
    'extendedKeyUsage=serverAuth',
    LEAF,
  ]);
  issue('ca/other', '/CN=Other', undefined, CA_EXTENSIONS);
  issue('ca/issuing2', '/CN=Issuing', 'ca/other', CA_EXTENSIONS);
  issue('tls/client', '/CN=client', 'ca/issuing', ['extendedKeyUsage=clientAuth', LEAF]);
  const names = ['ca/root', 'ca/issuing', 'admin/ca', 'tls/server', 'ca/other', 'ca/issuing2', 'tls/client'];
  for (const name of names.flatMap((name) => [`${name}.pem`, `${name}.key`])) good.set(name, await readFile(at(name)));
});
beforeEach(async () => {
  for (const [name, content] of good) {
    await folder.write(name, content);
    await chmod(at(name), 0o600);
  }
});
afterAll(() => folder.remove());

const at = (name: string): string => join(folder.path, name);
const content = (name: string): Buffer => good.get(name) ?? Buffer.alloc(0);

/** A certificate and its key as `NAME.pem` and `NAME.key`, self-signed without an issuer. */
function issue(
  name: string,
  subject: string,
  issuer: string | undefined,
  extensions: readonly string[],
  days = 30,
): void {
  const signer = issuer === undefined ? [] : ['-CA', at(`${issuer}.pem`), '-CAkey', at(`${issuer}.key`)];
  certifyNewKey(at(`${name}.key`), at(`${name}.pem`), [
    ...['-days', String(days), '-subj', subject, ...signer],
    ...extensions.flatMap((extension) => ['-addext', extension]),
  ]);
}

/** The problems with the checks of files on, at a time. */
const problems = (text: string, now = Date.now()): Promise<string[]> => folder.problems(text, {}, { now });

/** The first problem where one is enough. */
async function expectProblem(text: string, line: string): Promise<void> {
  expect(await problems(text)).toContain(`est.toml: ${line}`);
}

test('two CAs of one key are a warning: further labels of one CA are meant', async () => {
  const again = PARTS.ca.replace('label = "devices"\ndefault = true', 'label = "again"');
  const { warnings } = await folder.load(toml(again), {}, {});
  expect(warnings).toEqual([
    {
      key: 'ca[again].certificate',
      message:
        'has the same key as "devices": each CA accepts the other\'s certificates as its own, without their serial numbers and revocations (a [[label]] of "devices")',
    },
  ]);
});

test.each([
  'ca/root.pem',
  'ca/issuing.pem',
  'ca/issuing.key',
  'admin/ca.pem',
  'tls/server.pem',
  'tls/server.key',
  'ca/other.pem',
])('each finding is reported once, even if several checks read the file: %s cannot be read', async (name) => {
  const twice = 'client_issuers = ["own", "ca/other.pem", "ca/other.pem"]';
  const ca = PARTS.ca.replace('chain =', `${twice}\nchain =`);
  const text = toml(
    `[ca.profile]\nrenewal_issuers = "ca/other.pem"\n[[label]]\nname = "guests"\nca = "devices"\n${twice}`,
    { ca },
  );
  expect(await problems(text)).toEqual([]);
  await folder.write(name, 'not PEM');
  const lines = await problems(text);
  expect(lines.filter((line) => line.includes(name)).length).toBeGreaterThan(0);
  expect(lines).toEqual([...new Set(lines)]);
  expect(lines.join('\n')).not.toMatch(/\b(ca|label)\[\d+\]/);
});

test('a configuration whose files are in order is accepted, without a warning', async () => {
  const { warnings } = await folder.load(toml(), {}, {});
  expect(warnings).toEqual([]);
});

test('a chain that repeats the certificate of the CA itself is tolerated', async () => {
  await folder.write('ca/root.pem', Buffer.concat([content('ca/issuing.pem'), content('ca/root.pem')]));
  expect(await problems(toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "ca/issuing.pem"' }))).toEqual([]);
});

describe('who may enroll', () => {
  const anchors = '[tls.client_auth]\ntrust_anchors = "anchors.pem"';
  const warnings = async (more: string): Promise<string[]> => {
    await folder.write('anchors.pem', Buffer.concat([content('ca/root.pem'), content('ca/other.pem')]));
    const ca = PARTS.ca.replace('[ca.file]', `${more}\n[ca.file]`);
    const loaded = await folder.load(toml('', { clientAuth: anchors, ca }), {}, {});
    return loaded.warnings
      .map(({ key, message }) => `${key}: ${message}`)
      .filter((text) => !text.startsWith('ca[devices].profile: '));
  };
  const leftOut = (name: string): string =>
    `ca[devices].client_issuers: leaves out the trust anchor "CN=${name}": certificates under it do not authenticate at "devices" (add its file to the list if they should)`;

  test.each<[string, string, readonly string[]]>([
    ['the default', '', []],
    ['any', 'client_issuers = ["any"]', [expect.stringContaining('contains "any": ') as string]],
    ['own', 'client_issuers = ["own"]', [leftOut('Other')]],
    ['anchors', 'client_issuers = ["anchors"]', [leftOut('Root')]],
    ['a file', 'client_issuers = ["ca/other.pem"]', [leftOut('Root')]],
    ['a file of a CA below an anchor', 'client_issuers = ["ca/issuing.pem"]', [leftOut('Other')]],
    ['nobody', 'client_issuers = []', [leftOut('Root'), leftOut('Other')]],
    [
      'methods that are all switched off',
      'auth.methods = ["gssapi"]',
      [
        'ca[devices].auth.methods: contains no enabled method, so nobody can enroll at "devices" (an enabled method, or no key)',
      ],
    ],
    [
      'the method of CMC, without a shared secret for this label',
      'auth.methods = ["cmc"]',
      [
        'ca[devices].auth.methods: contains no enabled method, so nobody can enroll at "devices" (an enabled method, or no key)',
      ],
    ],
  ])('--check names the anchors that a list leaves out: %s', async (_, more, expected) => {
    expect(await warnings(more)).toEqual(expected);
  });

  const TIED = 'profile.subject.template = "CN={cert.CN}"\nprofile.san.allowed = []';
  test.each<[string, string, readonly string[]]>([
    ['the default', '', ['Other']],
    ['any', 'client_issuers = ["any"]', ['Other']],
    ['a file', 'client_issuers = ["own", "ca/other.pem"]', ['Other']],
    ['own', 'client_issuers = ["own"]', []],
    ['another method', 'auth.methods = ["otp"]', []],
    ['their own names only', 'profile.mtls_subject = "same"', []],
    ['a template', TIED, []],
    ['a template, and any SAN', 'profile.subject.template = "CN={cert.CN}"', ['Other']],
    ['an approval of each', 'approval = "manual"', []],
  ])("--check names foreign anchors whose certificates may ask for another's name: %s", async (_, more, names) => {
    await folder.write('anchors.pem', Buffer.concat([content('ca/root.pem'), content('ca/other.pem')]));
    const ca = PARTS.ca.replace('[ca.file]', `${more}\n[ca.file]`);
    const loaded = await folder.load(toml('', { clientAuth: anchors, ca }), {}, {});
    const about = loaded.warnings.filter(({ key }) => key === 'ca[devices].profile').map(({ message }) => message);
    expect(about).toEqual(
      names.map(
        (name) =>
          `does not restrict the names for certificates under "CN=${name}": each can ask for any name, including those of others (subject.template, and san.allowed = [] or patterns with a placeholder)`,
      ),
    );
  });

  test('a file of client_issuers that is not there', async () => {
    const ca = PARTS.ca.replace('[ca.file]', 'client_issuers = ["own", "no.pem"]\n[ca.file]');
    await expectProblem(
      toml('', { ca }),
      'ca[devices].client_issuers: cannot read no.pem: there is no such file (a PEM file with one certificate or more)',
    );
  });
});

describe('--check finds files that are missing or damaged', () => {
  const CERTIFICATES = 'a PEM file with one certificate or more';
  const KEY = 'a PEM file with one private key, without a passphrase';

  test('every missing file is named at once', async () => {
    const tls = '[tls]\ncertificate = "no.pem"\nprivate_key = "no.key"';
    const clientAuth = '[tls.client_auth]\ntrust_anchors = "no-anchors.pem"\ncrl = "no.crl"';
    expect(await problems(toml('', { tls, clientAuth }))).toEqual([
      `est.toml: tls.certificate: cannot read no.pem: there is no such file (${CERTIFICATES})`,
      `est.toml: tls.private_key: cannot read no.key: there is no such file (${KEY})`,
      `est.toml: tls.client_auth.trust_anchors: cannot read no-anchors.pem: there is no such file (${CERTIFICATES})`,
      'est.toml: tls.client_auth.crl: cannot read no.crl: there is no such file (a CRL in PEM or DER, or a folder of such files)',
    ]);
  });

  test.each([
    [
      'an empty certificate file',
      'tls/server.pem',
      '',
      'tls.certificate: tls/server.pem contains no certificate: it is empty',
      CERTIFICATES,
    ],
    [
      'a key in place of a certificate',
      'tls/server.pem',
      'tls/server.key',
      'tls.certificate: tls/server.pem contains no certificate: it has PRIVATE KEY',
      CERTIFICATES,
    ],
    [
      'a certificate in place of a key',
      'tls/server.key',
      'tls/server.pem',
      'tls.private_key: tls/server.key contains no readable private key: it has CERTIFICATE',
      KEY,
    ],
    [
      'no trust anchors',
      'ca/root.pem',
      '',
      'tls.client_auth.trust_anchors: ca/root.pem contains no certificate: it is empty',
      CERTIFICATES,
    ],
  ])('%s', async (_, file, source, problem, allowed) => {
    await folder.write(file, source === '' ? '' : content(source));
    await expectProblem(toml(), `${problem} (${allowed})`);
  });

  test('a truncated certificate', async () => {
    const der = content('tls/server.pem')
      .toString()
      .replace(/[A-Za-z0-9+/=]{64}\n(?=-)|\n[A-Za-z0-9+/=]+\n(?=-----END)/, '\n');
    await folder.write('tls/server.pem', der);
    const lines = await problems(toml());
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^est\.toml: tls\.certificate: tls\/server\.pem: certificate 1 cannot be read: /);
  });

  test.each([
    [Buffer.from([0x30, 0x82, 1, 1]), 'it is DER or PKCS #12, not PEM'],
    [Buffer.from('MIIB'), 'it is not PEM'],
  ])('a certificate that is not PEM: %j', async (bytes, what) => {
    await folder.write('tls/server.pem', bytes);
    await expectProblem(toml(), `tls.certificate: tls/server.pem contains no certificate: ${what} (${CERTIFICATES})`);
  });

  test('an encrypted key of a CA names the keys for its passphrase', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
    await folder.write('ca/issuing.key', pem);
    expect((await problems(toml())).join()).toContain(
      'is encrypted (a PEM file with one private key; if it is encrypted, password_file or password_env',
    );
  });

  test('a password for a key of a CA that is not encrypted is a warning', async () => {
    await folder.write('password', 'x\n');
    const ca = PARTS.ca.replace('[ca.file]', '[ca.file]\npassword_file = "password"');
    const { warnings } = await folder.load(toml('', { ca }), {}, {});
    expect(warnings.map(({ key, message }) => `${key}: ${message}`)).toContain(
      `ca[devices].file.private_key: ${at('ca/issuing.key')} is not encrypted, so its password is not used ` +
        '(an encrypted key, as "openssl pkcs8 -topk8" makes it, or neither password_file nor password_env)',
    );
  });

  test('an encrypted key', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
    await folder.write('tls/server.key', pem);
    await expectProblem(toml(), `tls.private_key: tls/server.key is encrypted (${KEY})`);
  });

  test('a damaged CRL, in a file or a folder', async () => {
    await folder.write('crls/a.crl', Buffer.from([0x30, 0x03, 1, 2, 3]));
    for (const crl of ['crls', 'crls/a.crl']) {
      const [line, ...others] = await problems(toml('', { clientAuth: `${PARTS.clientAuth}\ncrl = "${crl}"` }));
      expect(others).toEqual([]);
      expect(line).toMatch(/^est\.toml: tls\.client_auth\.crl: crls\/a\.crl contains a damaged CRL: /);
    }
  });
});

describe('--check finds a PKI that does not fit together', () => {
  test.each([
    ['tls.private_key: is not the key of tls.certificate, which begins with "CN=localhost"', 'tls/server.key'],
    [
      'ca[devices].file.private_key: is not the key of ca[devices].certificate, which begins with "CN=Issuing"',
      'ca/issuing.key',
    ],
  ])('%s', async (problem, file) => {
    await folder.write(file, content('ca/other.key'));
    await expectProblem(toml(), `${problem} (the private key of the first certificate)`);
  });

  test('an admin certificate with another key', async () => {
    const admin = `${PARTS.admin}\ncertificate = "tls/client.pem"\nprivate_key = "tls/server.key"`;
    await expectProblem(
      toml('', { admin }),
      'admin.tls.private_key: is not the key of admin.tls.certificate, which begins with "CN=client" (the private key of the first certificate)',
    );
  });

  test('a CA certificate that is not one of a CA', async () => {
    await folder.write('ca/issuing.pem', content('tls/client.pem'));
    await folder.write('ca/issuing.key', content('tls/client.key'));
    const lines = await problems(toml());
    expect(lines.join('\n')).toContain('"CN=client" is not a CA certificate (basicConstraints)');
  });

  test('a trust anchor that is not a CA certificate', async () => {
    await expectProblem(
      toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "tls/client.pem"' }),
      'tls.client_auth.trust_anchors: "CN=client" is not a CA certificate (CA certificates only)',
    );
  });

  test('RFC 5280 §6.1: a trust anchor of version 1, or with keyCertSign alone, is a warning', async () => {
    const old = await makeCertificate({ subject: 'CN=Old', version: 1 });
    const plain = await makeCertificate({ subject: 'CN=Plain', extensions: [keyUsage('keyCertSign')] });
    await folder.write('tls/anchors.pem', [old, plain].map(({ der }) => encodePem('CERTIFICATE', der)).join(''));
    const { warnings } = await folder.load(
      toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "tls/anchors.pem"' }),
      {},
      {},
    );
    expect(warnings.flatMap(({ key, message }) => (key === 'tls.client_auth.trust_anchors' ? [message] : []))).toEqual([
      '"CN=Old" is of version 1: other software may not accept it as a CA (a CA certificate of version 3)',
      '"CN=Plain" has no basicConstraints: other software may not accept it as a CA (a CA certificate of version 3)',
    ]);
  });

  test('RFC 5280 §6.1.4: an end entity, or a certificate of version 1 that another CA issued, is no trust anchor', async () => {
    const root = await makeCa('CN=Root of old');
    const below = await makeCertificate({ subject: 'CN=Below', issuer: root, version: 1 });
    const own = await makeCertificate({ subject: 'CN=Own', extensions: [keyUsage('digitalSignature')] });
    const neither = await makeCertificate({ subject: 'CN=Neither' });
    await folder.write(
      'tls/anchors.pem',
      [below, own, neither].map(({ der }) => encodePem('CERTIFICATE', der)).join(''),
    );
    expect(await problems(toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "tls/anchors.pem"' }))).toEqual(
      ['Below', 'Own', 'Neither'].map(
        (cn) => `est.toml: tls.client_auth.trust_anchors: "CN=${cn}" is not a CA certificate (CA certificates only)`,
      ),
    );
  });

  test.each([
    ['DER', (der: Buffer) => der],
    ['PKCS #7 in DER', (der: Buffer) => certsOnly([der])],
  ])('trust anchors in %s are read', async (_, form) => {
    const [root] = parsePem(content('ca/root.pem').toString());
    await folder.write('tls/anchors.der', form(root?.der ?? expect.fail()));
    expect(await problems(toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "tls/anchors.der"' }))).toEqual(
      [],
    );
  });

  test('a certificate of a bundle that cannot be read is named by its file and number', async () => {
    const pem = content('ca/root.pem').toString();
    await folder.write('tls/anchors.pem', pem + encodePem('CERTIFICATE', Buffer.from([0x30, 0])) + pem);
    await expectProblem(
      toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "tls/anchors.pem"' }),
      'tls.client_auth.trust_anchors: tls/anchors.pem: certificate 2 cannot be read: Certificate.tbsCertificate: truncated header (a PEM file with one certificate or more)',
    );
  });

  test('a chain without a root', async () => {
    await expectProblem(
      toml('', { ca: PARTS.ca.replace('chain = "ca/root.pem"\n', '') }),
      'ca[devices].chain: is missing: it must contain "CN=Root", which issued "CN=Issuing" (the CA certificates above the CA, in order, the self-signed root last)',
    );
  });

  test('a chain of another CA with other names', async () => {
    const lines = await problems(toml('', { ca: PARTS.ca.replace('ca/root.pem', 'ca/other.pem') }));
    expect(lines).toEqual([
      'est.toml: ca[devices].chain: "CN=Issuing" was issued by "CN=Root", not by the next certificate of the chain (the CA certificates above the CA, in order)',
    ]);
  });

  test('a chain whose root has the right name and another key', async () => {
    issue('ca/fake', '/CN=Root', undefined, CA_EXTENSIONS);
    const lines = await problems(toml('', { ca: PARTS.ca.replace('ca/root.pem', 'ca/fake.pem') }));
    expect(lines).toEqual([
      'est.toml: ca[devices].chain: the signature of "CN=Issuing" does not verify with the next certificate of the chain (the CA certificates above the CA, in order)',
    ]);
  });

  test('RFC 4210 §4.4: a chain with a link to an earlier root is accepted, and a warning when the link has expired', async () => {
    issue('ca/old-with-new', '/CN=Root', 'ca/root', CA_EXTENSIONS, 10);
    await folder.write(
      'ca/root.pem',
      Buffer.concat([content('ca/root.pem'), await readFile(at('ca/old-with-new.pem'))]),
    );
    expect(await problems(toml())).toEqual([]);
    const { warnings } = await folder.load(toml(), {}, { now: Date.now() + 20 * DAY });
    expect(warnings.filter(({ key }) => key === 'ca[devices].chain').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^"CN=Root", a rollover certificate, expired on .* \(remove the expired certificate\)$/),
    ]);
  });

  test('a root that ends before the CA is a warning', async () => {
    issue('ca/root', '/CN=Root', undefined, CA_EXTENSIONS, 10);
    issue('ca/issuing', '/CN=Issuing', 'ca/root', CA_EXTENSIONS, 20);
    const { warnings } = await folder.load(toml(), {}, {});
    expect(warnings).toEqual([
      {
        key: 'ca[devices].chain',
        message: expect.stringMatching(/^"CN=Root" expires on .*, before the CA below it \(/) as string,
      },
    ]);
  });

  test('a chain with a CA that nothing links to it', async () => {
    await folder.write('ca/root.pem', Buffer.concat([content('ca/root.pem'), content('ca/other.pem')]));
    expect(await problems(toml('', { clientAuth: '[tls.client_auth]\ntrust_anchors = "ca/issuing.pem"' }))).toEqual([
      'est.toml: ca[devices].chain: "CN=Other" is neither above the CA nor linked to it by rollover certificates (the CA certificates above the CA, in order)',
    ]);
  });

  test.each([
    ['the CA', ['ca/issuing'], ['Issuing']],
    ['the root above it, next to a valid one', ['admin/ca', 'ca/root'], ['Root']],
    ['a CA of the same name and another key', ['ca/issuing2'], []],
  ])('admin.tls.trust_anchors is %s', async (_, names, refused) => {
    await folder.write('admin/ca.pem', Buffer.concat(names.map((name) => content(`${name}.pem`))));
    expect(await problems(toml())).toEqual(
      refused.map(
        (name) =>
          `est.toml: admin.tls.trust_anchors: "CN=${name}" is a CA of this server or above one, so every device would be an administrator (a CA for administrators only)`,
      ),
    );
  });

  test('admin.tls.trust_anchors has signed the CA, though the chain does not name it', async () => {
    await folder.write('ca/chain.pem', '');
    issue('ca/above', '/CN=Above', undefined, CA_EXTENSIONS);
    issue('ca/issuing', '/CN=Issuing', 'ca/above', CA_EXTENSIONS);
    await folder.write('admin/ca.pem', await readFile(at('ca/above.pem')));
    const lines = await problems(toml());
    expect(
      lines.filter((line) => line.startsWith('est.toml: admin.tls.trust_anchors: "CN=Above" is a CA')),
    ).toHaveLength(1);
  });

  test('an issuer of admin.clients that is not an anchor is a warning: others could take its name', async () => {
    const entries = ['CN=admins', 'CN=Elsewhere'].map(
      (issuer) => `[[admin.clients]]\nsubject = "CN=Ada"\nissuer = "${issuer}"`,
    );
    const admin = PARTS.admin.replace('["admin"]', '[]');
    const { warnings } = await folder.load(toml(entries.join('\n'), { admin }), {}, {});
    expect(warnings).toEqual([
      {
        key: 'admin.clients[1].issuer',
        message:
          '"CN=Elsewhere" is not the subject of a certificate in admin.tls.trust_anchors, so every CA below these anchors can use this name (add the certificate of this CA to the file)',
      },
    ]);
  });

  test('certificates that have expired, or are not valid yet, are warnings', async () => {
    const warned = async (now: number) =>
      (await folder.load(toml(), {}, { now })).warnings.map(({ key, message }) => `${key}: ${message}`);
    const later = await warned(Date.now() + 40 * DAY);
    for (const key of ['ca[devices].certificate', 'ca[devices].chain', 'tls.client_auth.trust_anchors'])
      expect(later.some((line) => line.startsWith(`${key}: `) && line.includes(' expired on '))).toBe(true);
    const earlier = await warned(Date.now() - 2 * DAY);
    expect(earlier.some((line) => /^tls\.certificate: .* is not valid before /.test(line))).toBe(true);
  });

  test('a problem with a file does not hide another of the keys', async () => {
    const lines = await problems(toml('[otp]\ntoken_length = 1', { tls: '[tls]\ncertificate = "no.pem"' }));
    expect(lines).toHaveLength(3);
  });
});

describe('RFC 6960 §4.2.2.2: a delegated OCSP responder', () => {
  const GOOD = [LEAF, 'keyUsage=digitalSignature', 'extendedKeyUsage=OCSPSigning', 'noCheck=ignored'];
  const withOcsp = toml('', {
    ca: `${PARTS.ca}\n[ca.ocsp]\ncertificate = "ca/ocsp.pem"\nprivate_key = "ca/ocsp.key"`,
  });

  test('one that the CA has issued for it is accepted', async () => {
    issue('ca/ocsp', '/CN=Responder', 'ca/issuing', GOOD);
    const { warnings, config } = await folder.load(withOcsp, {}, {});
    expect(warnings).toEqual([]);
    expect(config.ca[0]?.ocsp).toEqual({ certificate: at('ca/ocsp.pem'), private_key: at('ca/ocsp.key') });
  });

  test.each<[string, string, string[], string]>([
    ['of the root', 'ca/root', GOOD, '"CN=Responder" was not issued by the CA'],
    ['of a namesake of the CA', 'ca/issuing2', GOOD, '"CN=Responder" was not issued by the CA'],
    ['without extKeyUsage', 'ca/issuing', [LEAF], 'is not for OCSP responders (extKeyUsage OCSPSigning)'],
    [
      'for clients',
      'ca/issuing',
      [LEAF, 'extendedKeyUsage=clientAuth'],
      'is not for OCSP responders (extKeyUsage OCSPSigning)',
    ],
    [
      'whose key may not sign',
      'ca/issuing',
      [LEAF, 'keyUsage=keyAgreement', 'extendedKeyUsage=OCSPSigning'],
      'may not sign (keyUsage without digitalSignature)',
    ],
  ])('a certificate %s is refused', async (_, issuer, extensions, problem) => {
    issue('ca/ocsp', '/CN=Responder', issuer, extensions);
    await expectProblem(
      withOcsp,
      `ca[devices].ocsp.certificate: ${problem} (a certificate for OCSP responders, issued by the CA)`,
    );
  });

  test("one that has expired is a warning: the CA's own key answers", async () => {
    issue('ca/ocsp', '/CN=Responder', 'ca/issuing', GOOD, 1);
    const now = Date.now() + 2 * DAY;
    const { warnings } = await folder.load(withOcsp, {}, { now });
    expect(warnings).toEqual([
      {
        key: 'ca[devices].ocsp.certificate',
        message: expect.stringMatching(/^the certificate expired on .*: the CA key signs OCSP responses \(/) as string,
      },
    ]);
  });

  test("another key than the certificate's is refused", async () => {
    issue('ca/ocsp', '/CN=Responder', 'ca/issuing', GOOD);
    await folder.write('ca/ocsp.key', content('ca/other.key'));
    await expectProblem(
      withOcsp,
      'ca[devices].ocsp.private_key: is not the key of ca[devices].ocsp.certificate, which begins with "CN=Responder" (the private key of the first certificate)',
    );
  });

  test('one whose own status relying parties may ask for is a warning', async () => {
    issue('ca/ocsp', '/CN=Responder', 'ca/issuing', [LEAF, 'extendedKeyUsage=OCSPSigning']);
    const { warnings } = await folder.load(withOcsp, {}, {});
    expect(warnings).toEqual([
      {
        key: 'ca[devices].ocsp.certificate',
        message: 'relying parties may request the status of the responder (add the extension id-pkix-ocsp-nocheck)',
      },
    ]);
  });
});

describe('warnings about files', () => {
  test('a server certificate that has expired', async () => {
    issue('tls/short', '/CN=localhost', 'ca/issuing', ['extendedKeyUsage=serverAuth', LEAF], 1);
    const now = Date.now() + 2 * DAY;
    const pair = 'certificate = "tls/short.pem"\nprivate_key = "tls/short.key"';
    const text = toml('', { tls: `[tls]\n${pair}` }).replace('[admin.tls]', `[admin.tls]\n${pair}`);
    const { warnings } = await folder.load(text, {}, { now });
    expect(warnings).toEqual(
      ['tls.certificate', 'admin.tls.certificate'].map((key) => ({
        key,
        message: expect.stringMatching(/^the certificate expired on .*: clients .* do not connect \(/) as string,
      })),
    );
  });

  test('a key that everybody can read', async () => {
    await chmod(at('ca/issuing.key'), 0o644);
    const { warnings } = await folder.load(toml(), {}, {});
    expect(warnings).toEqual([
      {
        key: 'ca[devices].file.private_key',
        message: `${at('ca/issuing.key')} is readable by every user of this machine (mode 0600)`,
      },
    ]);
  });

  test('a server certificate that is for clients only', async () => {
    const tls = '[tls]\ncertificate = "tls/client.pem"\nprivate_key = "tls/client.key"';
    const { warnings } = await folder.load(toml('', { tls }), {}, {});
    expect(warnings.map(({ key }) => key)).toEqual(['tls.certificate']);
  });
});

describe('[cmc]: the files of full CMC', () => {
  const cmc = (file: string): string => toml(`[cmc]\ncertificate = "${file}.pem"\nprivate_key = "${file}.key"`);

  test('RFC 6402 §2.10: a responder for CMC certification authorities is accepted; another one is a warning', async () => {
    issue('cmc', '/CN=CMC', 'ca/issuing', ['keyUsage=digitalSignature', 'extendedKeyUsage=1.3.6.1.5.5.7.3.27', LEAF]);
    expect((await folder.load(cmc('cmc'), {}, {})).warnings).toEqual([]);
    const { warnings } = await folder.load(cmc('tls/client'), {}, {});
    expect(warnings).toEqual([
      {
        key: 'cmc.certificate',
        message: 'the certificate is not for CMC certification authorities (extKeyUsage cmcCA)',
      },
    ]);
  });

  test('a responder that may not sign is refused', async () => {
    issue('cmc', '/CN=CMC', 'ca/issuing', ['keyUsage=keyAgreement', LEAF]);
    await expectProblem(
      cmc('cmc'),
      'cmc.certificate: the certificate may not sign (keyUsage digitalSignature, or none)',
    );
  });

  test("an authority's certificate that has expired is a warning", async () => {
    issue('ra', '/CN=RA', 'ca/issuing', [LEAF], 1);
    const { warnings } = await folder.load(
      toml('[cmc]\nra_certificates = ["ra.pem"]'),
      {},
      { now: Date.now() + 2 * DAY },
    );
    expect(warnings).toContainEqual({
      key: 'cmc.ra_certificates[0]',
      message: expect.stringMatching(
        /^the certificate of "CN=RA" expired on .*: it is not accepted as an RA/,
      ) as string,
    });
  });
});

describe('bearer tokens with an end', () => {
  test('one that has passed is a warning, which names the entry and not the token', async () => {
    const hash = (digit: string): string => `sha256:${digit.repeat(64)}`;
    const now = Date.now();
    const until = (ms: number): string => new Date(now + ms).toISOString();
    const text = toml(`[admin.bearer_token]
enabled = true
tokens = [
  { token_hash = "${hash('1')}", description = "for good" },
  { token_hash = "${hash('2')}", description = "monitoring", not_after = "${until(-1)}" },
  { token_hash = "${hash('3')}", description = "still", not_after = "${until(DAY)}" },
]`);
    const warned = (await folder.load(text, {}, { now })).warnings.filter(({ key }) => key.startsWith('admin.bearer'));
    expect(warned).toEqual([
      {
        key: 'admin.bearer_token.tokens[1].not_after',
        message: 'has passed: the token of "monitoring" has expired (create a new token, or remove the entry)',
      },
    ]);
    const off = (await folder.load(text.replace('enabled = true', 'enabled = false'), {}, { now })).warnings;
    expect(off.filter(({ key }) => key.startsWith('admin.bearer'))).toEqual([]);
  });
});
