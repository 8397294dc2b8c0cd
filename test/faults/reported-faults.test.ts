/** `check` and `doctor` name each fault that needs no change of the configuration: the part, the reason and what to do. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { type Issuer, makeCa, makeClient, makeCrl } from '../support/certificates.ts';
import { runAny } from '../support/command.ts';
import { section } from '../support/estuary.ts';
import { keyPair, pkcs8Pem } from '../support/keys.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { freePort } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { PIN, softHsm, SOFTHSM_MODULE } from '../support/softhsm.ts';

const folder = temporaryFolder();
const hsm = softHsm();
const env = { ...hsm.env, TEST_HSM_PIN: PIN, TEST_WRONG_PIN: 'wrong' };
const dead = `127.0.0.1:${await freePort()}`;
const OLD = { notAfter: Date.UTC(2026, 1, 1) };
const LATER = { notBefore: Date.UTC(2035, 1, 1) };
const write = (name: string, text: string): string => {
  writeFileSync(folder.file(name), text, { mode: 0o600 });
  return name;
};
const pem = (...all: readonly Issuer[]): string => all.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
const add = (config: TomlTable, list: string, ...tables: readonly TomlTable[]): void => {
  config[list] = [...(Array.isArray(config[list]) ? config[list] : []), ...tables];
};

/** Adds a fault to a configuration that has others, and the line of both commands, or of each. */
type Fault = readonly [change: (config: TomlTable) => unknown, check: RegExp, doctor?: RegExp];
type Faults = Readonly<Record<string, Fault>>;
/** Where, why, and what to do. */
const line = (...parts: readonly string[]): RegExp =>
  new RegExp(parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('.*'));

/** A label with its key in a file. */
const inFile =
  (label: string, of: object = {}, more: TomlTable = {}, key?: string) =>
  async (config: TomlTable): Promise<void> => {
    const ca = await makeCa(`CN=${label}`, of);
    const certificate = write(`ca/${label}.pem`, pem(ca));
    const private_key = write(`ca/${label}.key`, key ?? pkcs8Pem(ca.keys));
    const { file = {}, ...table } = more;
    const files = { certificate, chain: certificate, file: Object.assign({ private_key }, file) };
    add(config, 'ca', { label, driver: 'file', ...files, ...table });
  };
const LOCKED = keyPair('ec:P-256', 'locked').privateKey.export({
  ...({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'the right one' } as const),
});
/** A label with its key in a token. */
const inToken = (label: string, token: string, more: TomlTable) => async (config: TomlTable) => {
  const certificate = write(`ca/${label}.pem`, pem(await makeCa(`CN=${label}`)));
  const pkcs11 = { module: SOFTHSM_MODULE, token_label: token, pin_env: 'TEST_HSM_PIN', key_label: 'issuing', ...more };
  add(config, 'ca', { label, driver: 'pkcs11', certificate, chain: certificate, pkcs11 });
};
const remote =
  (label: string, driver: string, table: TomlTable, more: TomlTable = {}) =>
  (config: TomlTable) =>
    add(config, 'ca', {
      ...(driver === 'dogtag' ? {} : { upstream_trust_anchors: 'ca/root.pem' }),
      ...{ label, driver, [driver]: table, profile: { san: { dns: ['.*'] } }, ...more },
    });
const upstream = (host: string, more: TomlTable = {}): TomlTable => ({
  ...{ url: `https://${host}/.well-known/est`, tls_trust_anchors: 'ca/root.pem' },
  ...{ client_certificate: 'admin/client.pem', client_key: 'admin/client.key', ...more },
});
const dogtag = ({ url, tls_trust_anchors, ...client }: TomlTable): TomlTable => ({
  ...{ urls: [url ?? ''], trust_anchors: tls_trust_anchors ?? '', ...client },
});

const [CERTIFICATE, KEY] = ['(a PEM file with one certificate or more)', '(a PEM file with one private key'];
const VALID = '(a certificate that is valid now)';
const TOKEN = '(the label of ';
const token = (label: string, why: string): RegExp =>
  line(`ca: ${label}: `, why, `this label answers 503. Restore the token, or correct ca[${label}]`);
const away = (label: string): string =>
  `this label answers 503. Restore the CA or the connection, or correct ca[${label}]`;

const LABELS: Faults = {
  'an expired CA': [inFile('old', OLD), line('ca[old].certificate', 'the certificate expired on', VALID)],
  'a CA that is not valid yet': [inFile('new', LATER), line('ca[new].certificate', 'is not valid before', VALID)],
  'an expired root in a chain': [
    async (config) => {
      const root = await makeCa('CN=Old root', OLD);
      const chain = write('ca/old-root.pem', pem(root));
      await inFile('below', { issuer: root }, { chain })(config);
    },
    line('ca[below].chain', '"CN=Old root" expired on', VALID),
  ],
  'a missing certificate': [
    inFile('bare', {}, { certificate: 'ca/none.pem' }),
    line('ca[bare].certificate', 'none.pem: there is no such file', CERTIFICATE),
  ],
  'a missing key': [
    inFile('keyless', {}, { file: { private_key: 'ca/none.key' } }),
    line('ca[keyless].file.private_key', 'none.key: there is no such file', KEY),
  ],
  'a malformed key': [
    inFile('garbled', {}, {}, 'not a key'),
    line('ca[garbled].file.private_key', 'contains no readable private key', KEY),
  ],
  'an encrypted key': [inFile('shut', {}, {}, LOCKED), line('ca[shut].file.private_key', 'is encrypted', KEY)],
  'another passphrase': [
    inFile('locked', {}, { file: { password_file: 'word' } }, LOCKED),
    line('ca[locked].file.private_key', 'has another passphrase', KEY),
  ],
  'a passphrase in a missing file': [
    inFile('mute', {}, { file: { password_file: 'none' } }, LOCKED),
    line('ca[mute].file.password_file', 'there is no such file', '(a readable file)'),
  ],
  'a key of another CA': [
    inFile('mixed', {}, {}, pkcs8Pem(keyPair('ec:P-256', 'another'))),
    line('ca[mixed].file.private_key', 'is not the key of ca[mixed].certificate', '(the private key of the first'),
  ],
  'a malformed chain': [
    inFile('torn', {}, { chain: 'word' }),
    line('ca[torn].chain', 'contains no certificate: it is not PEM', CERTIFICATE),
  ],
  'a missing OCSP certificate': [
    inFile('silent', {}, { ocsp: { certificate: 'ca/none.pem', private_key: 'ca/none.key' } }),
    line('ca[silent].ocsp.certificate', 'none.pem: there is no such file', CERTIFICATE),
  ],
  'a malformed file of renewal_issuers': [
    inFile('moved', {}, { profile: { renewal_issuers: 'word' } }),
    line('ca[moved].profile.renewal_issuers', 'contains no certificate', CERTIFICATE),
  ],
  'a missing client certificate of an authorization service': [
    inFile(
      'asking',
      {},
      { authorization: { url: `https://${dead}/`, client_certificate: 'n.pem', client_key: 'n.key' } },
    ),
    line('ca[asking].authorization.client_certificate', 'n.pem: there is no such file', CERTIFICATE),
  ],
  'missing anchors of an upstream CA': [
    remote('lost', 'est', upstream(dead), { upstream_trust_anchors: 'none.pem' }),
    line('ca[lost].upstream_trust_anchors', 'none.pem: there is no such file', CERTIFICATE),
  ],
  'a missing key of an RA': [
    remote('sent', 'est', upstream(dead, { client_key: 'none.key' })),
    line('ca[sent].est.client_key', 'none.key: there is no such file', KEY),
  ],
  'a malformed certificate of an agent': [
    remote('agent', 'dogtag', dogtag(upstream(dead, { client_certificate: 'word' }))),
    line('ca[agent].dogtag.client_certificate', 'contains no certificate', CERTIFICATE),
  ],
  'an absent token': [
    inToken('absent', 'nowhere', {}),
    line('ca[absent].pkcs11.token_label', 'there is no token', TOKEN),
    token('absent', 'there is no token'),
  ],
  'a rejected PIN': [
    inToken('denied', 'other', { pin_env: 'TEST_WRONG_PIN' }),
    line('ca[denied].pkcs11.pin_env', 'refuses the PIN', "(the user's PIN"),
    token('denied', 'refuses the PIN'),
  ],
  'a missing key in a token': [
    inToken('empty', 'est', { key_label: 'none' }),
    line('ca[empty].pkcs11.key_label', 'has no private key labeled "none"', TOKEN),
    token('empty', 'has no private key labeled "none"'),
  ],
  'another key in a token': [
    inToken('swapped', 'est', {}),
    line('ca[swapped].pkcs11.key_label', 'does not belong to the CA certificate', TOKEN),
    token('swapped', 'does not belong to the CA certificate'),
  ],
  'a missing module': [
    inToken('unplugged', 'est', { module: '/none.so' }),
    line('ca[unplugged].pkcs11.module', 'none.so: there is no such file', '(the path of a PKCS#11 library)'),
  ],
  'an unreachable EST server': [remote('edge', 'est', upstream(dead)), line('edge', 'ECONNREFUSED', away('edge'))],
  'a host name that nobody resolves': [
    remote('nameless', 'est', upstream('ca.invalid')),
    line('nameless', 'getaddrinfo', away('nameless')),
  ],
  'an unreachable ACME server': [
    remote('acme', 'acme', { directory: `https://${dead}/`, account_key_file: 'account.key', challenge: 'none' }),
    line('acme', 'ECONNREFUSED', away('acme')),
  ],
  'a missing program': [
    remote('program', 'command', { issue: ['/none'] }),
    line('program', '/none cannot be run', away('program')),
  ],
  'an unreachable Dogtag': [
    remote('dogtag', 'dogtag', dogtag(upstream(dead))),
    line('dogtag', 'ECONNREFUSED', away('dogtag')),
  ],
};

/** Of the listeners and of what all labels have. Time is at fault, or nothing answers. */
const OTHERS: Faults = {
  'an expired TLS certificate': [
    async (config) => {
      const tls = section(config, 'tls');
      const of = await makeClient('CN=localhost', await makeCa('CN=TLS'), OLD);
      Object.assign(tls, {
        certificate: write('tls/old.pem', pem(of)),
        private_key: write('tls/old.key', pkcs8Pem(of.keys)),
      });
    },
    line('tls.certificate', 'the certificate expired on', 'clients that check it do not connect'),
  ],
  'an expired trust anchor of administrators': [
    async (config) => {
      const admin = section(config, 'admin', 'tls');
      admin['trust_anchors'] = write('admin/old.pem', pem(await makeCa('CN=Old team', OLD)));
    },
    line('admin.tls.trust_anchors', '"CN=Old team" expired on', 'it verifies nothing (a certificate'),
  ],
  'an expired CRL': [
    async (config) => {
      const east = await makeCa('CN=East');
      const crl = await makeCrl(east, { nextUpdate: OLD.notAfter });
      const anchors = readFileSync(folder.file('tls/client-anchors.pem'), 'utf8') + pem(east);
      const trust = {
        trust_anchors: write('tls/more.pem', anchors),
        crl: write('east.crl', encodePem('X509 CRL', crl)),
      };
      Object.assign(section(config, 'tls', 'client_auth'), trust);
    },
    line(
      'tls.client_auth.crl',
      'the CRL of "CN=East" expired on',
      '(a current CRL, and a reload): its certificates are rejected',
    ),
  ],
  'an expired CRL for administrators': [
    async (config) => {
      const west = await makeCa('CN=West');
      const crl = await makeCrl(west, { nextUpdate: OLD.notAfter });
      const trust = {
        trust_anchors: write('admin/more.pem', readFileSync(folder.file('admin/old.pem'), 'utf8') + pem(west)),
        crl: write('west.crl', encodePem('X509 CRL', crl)),
      };
      Object.assign(section(config, 'admin', 'tls'), trust);
    },
    line('admin.tls.crl', 'the CRL of "CN=West" expired on', '(a current CRL, and a reload)'),
  ],
  'an unreachable directory': [
    (config) => {
      section(config, 'otp')['enabled'] = false;
      Object.assign(section(config, 'auth', 'ldap'), { url: `ldaps://${dead}`, user_dn: 'uid={username},dc=example' });
    },
    line('ldaps://', 'ECONNREFUSED', 'get 503. Restore the service or the connection, or correct auth.ldap'),
  ],
  'an unreachable token issuer': [
    (config) => {
      const jwt = {
        issuer: `https://${dead}/`,
        audience: 'est',
        jwks_url: `https://${dead}/jwks`,
        algorithms: ['ES256'],
      };
      Object.assign(section(config, 'auth', 'jwt'), jwt);
    },
    line(
      `https://${dead}/`,
      'ECONNREFUSED',
      'tokens get 503. Restore the service or the connection, or correct auth.jwt',
    ),
  ],
  'an unreachable OpenID provider': [
    (config) => {
      const client = {
        client_id: 'estuary',
        client_secret_file: 'word',
        redirect_url: 'https://localhost/auth/oidc/callback',
      };
      const roles = { roles_claim: 'groups', roles: { team: { roles: ['ra'] } } };
      Object.assign(section(config, 'admin', 'oidc'), { issuer: `https://${dead}/`, ...client, ...roles });
    },
    line(
      `https://${dead}/`,
      'ECONNREFUSED',
      'cannot sign in there. Restore the service or the connection, or correct admin.oidc',
    ),
  ],
  'an unreachable authorization service': [
    inFile('asking', {}, { authorization: { url: `https://${dead}/` } }),
    line(
      `https://${dead}: `,
      'ECONNREFUSED',
      'answers 503. Restore the service or the connection, or correct ca[asking].authorization',
    ),
  ],
  'an unreachable webhook': [
    (config) => add(config, 'notifications', { kind: 'webhook', name: 'hook', url: `https://${dead}/` }),
    line(
      `https://${dead}: `,
      'ECONNREFUSED',
      'wait. Restore the service or the connection, or correct notifications[0]',
    ),
  ],
  'a mail server without an address': [
    (config) =>
      add(config, 'notifications', {
        kind: 'smtp',
        name: 'mail',
        host: 'mail.invalid',
        from: 'a@example.com',
        to: ['b@example.com'],
      }),
    line('mail.invalid: ', 'getaddrinfo', 'wait. Restore the service or the connection, or correct notifications[1]'),
  ],
  'a database that does not answer': [
    (config) => {
      const url = write('store.url', `postgres://estuary@${dead}/est?sslmode=disable`);
      config['store'] = { driver: 'postgres', url_file: url };
    },
    line('store.url', 'ECONNREFUSED', '(a reachable database'),
    line('store: ', 'ECONNREFUSED', 'the server waits. Restore the database or the connection, or correct store.url'),
  ],
};

/** Without them a start ends with exit code 1. */
const FILES: Faults = {
  'a missing TLS key': [
    (config) => (section(config, 'tls')['private_key'] = 'none.key'),
    line('tls.private_key', 'none.key: there is no such file', KEY),
  ],
  'a key of another certificate': [
    (config) =>
      Object.assign(section(config, 'admin', 'tls'), { certificate: 'tls/server.pem', private_key: 'ca/lab.key' }),
    line(
      'admin.tls.private_key',
      'is not the key of admin.tls.certificate',
      '(the private key of the first certificate)',
    ),
  ],
  'malformed trust anchors': [
    (config) => (section(config, 'tls', 'client_auth')['trust_anchors'] = 'word'),
    line('tls.client_auth.trust_anchors', 'contains no certificate', CERTIFICATE),
  ],
  'a damaged CRL': [
    (config) => (section(config, 'tls', 'client_auth')['crl'] = 'word'),
    line('tls.client_auth.crl', 'word contains no CRL', '(a CRL in PEM or DER, or a folder of such files)'),
  ],
  'a missing certificate of an RA': [
    (config) => Object.assign(section(config, 'cmc'), { ra_certificates: ['none.pem'] }),
    line('cmc.ra_certificates[0]', 'none.pem: there is no such file', CERTIFICATE),
  ],
  'a malformed JWKS': [
    (config) => {
      const jwt = { issuer: `https://${dead}/`, audience: 'est', jwks_file: 'word', algorithms: ['ES256'] };
      Object.assign(section(config, 'auth', 'jwt'), jwt);
    },
    line('auth.jwt.jwks_file', 'it is not JSON', '(a JWKS (RFC 7517)'),
  ],
  'a missing secret': [
    (config) => (section(config, 'otp')['hmac_key_file'] = 'none'),
    line('otp.', 'there is no such file', '(a readable file)'),
  ],
};

describe.skipIf(!requires('softhsm'))('check and doctor', () => {
  beforeAll(async () => {
    await makeQuickstart(folder.path);
    write('word', 'a wrong one');
    for (const token of ['est', 'other']) hsm.addToken(token);
    await hsm.addKey('est', 'ec:P-256', 'issuing', '01');
  });
  afterAll(() => {
    folder.remove();
    hsm.remove();
  });

  describe.each([
    ['labels', LABELS, { check: 2, doctor: 1 }],
    ['others', OTHERS, { check: 0, doctor: 1 }],
    ['files', FILES, { check: 2, doctor: 1 }],
  ] as const)('%s', (name, faults: Faults, codes) => {
    const outputs = { check: '', doctor: '' };
    test('the exit code', { timeout: 60_000 }, async () => {
      const config = parse(readFileSync(folder.file('est.toml'), 'utf8'));
      for (const [change] of Object.values(faults)) await change(config);
      write(`${name}.toml`, stringify(config));
      for (const command of ['check', 'doctor'] as const) {
        const { code, output } = await runAny(NODE, [SERVER, command, '--config', folder.file(`${name}.toml`)], {
          env,
        });
        expect.soft(code, output).toBe(codes[command]);
        outputs[command] = output;
      }
    });
    test.each(Object.entries(faults))('%s', (_, [, check, doctor = check]) => {
      expect.soft(outputs.check).toMatch(check);
      expect.soft(outputs.doctor).toMatch(doctor);
    });
  });
});
