/** Configured files are read, parsed and checked once, in one place, for start, `--check` and reload. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify, type TomlTable, type TomlValue } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planReload } from '../../../src/config/diff.ts';
import { loadConfig, loadConfigOnly } from '../../../src/config/load.ts';
import { loadMaterial, readMaterial } from '../../../src/config/material/load-material.ts';
import { MaterialReader } from '../../../src/config/material/reader.ts';
import { loadTrust } from '../../../src/config/material/trust.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { makeCa, makeCrl } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { makeQuickstart } from '../../support/quickstart.ts';

const folder = temporaryFolder();
const dir = join(folder.path, 'service');
const file = join(dir, 'est.toml');
const NOW = Date.now();
beforeAll(async () => {
  await makeQuickstart(dir);
});
afterAll(() => folder.remove());

describe('material', () => {
  test('has every certificate and key of a configuration, and the files are not needed any more', async () => {
    const { material } = await loadConfig(file, {});
    expect(material.tls && formatName(material.tls.certificates[0].subject)).toContain('CN=localhost');
    expect(material.adminTls).toBe(material.tls);
    expect(material.clientTrust?.anchors).toHaveLength(1);
    expect(material.adminTrust?.anchors).toHaveLength(1);
    expect(material.cas.map(({ table }) => [table.driver, table.label])).toEqual([
      ['file', 'devices'],
      ['file', 'lab'],
    ]);
    for (const { certificates } of material.cas) expect(certificates?.issuers).toHaveLength(1);
  });

  test('a file that two keys name is read once, so that both have the same', async () => {
    const { material } = await loadConfig(file, {});
    const roots = material.cas.map(({ certificates }) => certificates?.issuers[0]);
    expect(roots[0]).toBeDefined();
    expect(roots[1]).toBe(roots[0]);
  });

  test('without the files the configuration can be had alone', async () => {
    const key = join(dir, 'tls/server.key');
    renameSync(key, `${key}.away`);
    try {
      expect((await loadConfigOnly(file, {})).config.ca).toHaveLength(2);
      await expect(loadConfig(file, {})).rejects.toThrow('tls.private_key: cannot read');
    } finally {
      renameSync(`${key}.away`, key);
    }
  });

  test('takes what has expired, and reports it for the labels that it stops', async () => {
    const { config } = await loadConfigOnly(file, {});
    const { material, problems, faults } = await loadMaterial(config, NOW + 40 * 365 * 86_400_000);
    expect(problems).toEqual([]);
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.every(({ key, isTime }) => key.startsWith('ca[') && isTime === true)).toBe(true);
    expect(material?.cas.map(({ fault }) => fault)).toEqual([undefined, undefined]);
  });
});

describe('a file of a CA that cannot be used', () => {
  const broken = async <T>(name: string, content: string, look: () => Promise<T>): Promise<T> => {
    const path = join(dir, name);
    const before = readFileSync(path);
    writeFileSync(path, content);
    try {
      return await look();
    } finally {
      writeFileSync(path, before);
    }
  };

  test.each([
    ['ca/issuing.key', 'file.private_key'],
    ['ca/issuing.pem', 'certificate'],
    ['ca/root.pem', 'chain'],
  ])('at a start, %s takes its labels out of service, and nothing else', async (name, key) => {
    const { material, faults } = await broken(name, 'nothing', () => loadConfig(file, {}));
    expect(faults.map((fault) => fault.key)).toContain(`ca[devices].${key}`);
    expect(material.cas[0]?.fault).toContain(`${key}: `);
    expect(material.tls).toBeDefined();
  });

  test('at a reload, the label keeps its certificate, chain and key, while the certificate is valid', async () => {
    const first = await loadConfig(file, {});
    const reload = (now: number) => loadConfig(file, {}, now, first);
    const kept = await broken('ca/issuing.key', 'nothing', () => reload(Date.now()));
    expect(kept.faults.map(({ isKept }) => isKept)).toContain(true);
    expect(kept.material.cas[0]?.fault).toBeUndefined();
    expect(kept.material.cas[0]?.certificates).toEqual(first.material.cas[0]?.certificates);
    const later = await broken('ca/issuing.key', 'nothing', () => reload(NOW + 40 * 365 * 86_400_000));
    expect(later.material.cas[0]?.fault).toContain('file.private_key: ');
  });

  test('a TLS key that cannot be read stops a start, and at a reload the pair in force stays', async () => {
    const first = await loadConfig(file, {});
    const failed = broken('tls/server.key', 'nothing', () => loadConfig(file, {}));
    await expect(failed).rejects.toMatchObject({ isOfFiles: true });
    const kept = await broken('tls/server.key', 'nothing', () => loadConfig(file, {}, NOW, first));
    expect(kept.material.tls).toBe(first.material.tls);
  });

  test('a secret of the wrong form stops a start with the exit code of files, and a reload keeps the former one', async () => {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('[otp]', '[otp]\nhmac_key_file = "otp.key"'));
    writeFileSync(join(dir, 'otp.key'), 'a'.repeat(32));
    try {
      const first = await loadConfig(file, {});
      const failed = broken('otp.key', 'short', () => loadConfig(file, {}));
      await expect(failed).rejects.toMatchObject({
        isOfFiles: true,
        message: expect.stringContaining('otp.hmac_key: has 5 bytes (32 bytes or more)') as string,
      });
      const { config, faults } = await broken('otp.key', 'short', () => loadConfig(file, {}, NOW, first));
      expect(config.otp.hmac_key?.reveal().toString()).toBe('a'.repeat(32));
      expect(faults).toEqual([expect.objectContaining({ key: 'otp.hmac_key', isKept: true })]);
    } finally {
      writeFileSync(file, text);
    }
  });

  test('a command that needs the files of a configuration names the fault', async () => {
    const { config } = await loadConfigOnly(file, {});
    const failed = broken('tls/server.key', 'nothing', () => readMaterial(config));
    await expect(failed).rejects.toMatchObject({
      code: 'MATERIAL_UNUSABLE',
      detail: expect.stringContaining('tls.private_key: ') as string,
    });
  });
});

describe('a reload with a key that had no value, and whose file cannot be used', () => {
  /** Reloads a changed configuration next to a change of another part. */
  async function reloaded(change: TomlTable) {
    const before = await loadConfig(file, {});
    const text = readFileSync(file, 'utf8');
    const config: TomlTable = parse(text, { integersAsBigInt: true });
    const merge = (to: TomlTable, from: TomlTable): void => {
      for (const [name, value] of Object.entries(from)) {
        const [inner, old] = [value, to[name]];
        if (isToml(inner) && isToml(old)) merge(old, inner);
        else to[name] = value;
      }
    };
    merge(config, { log: { level: 'debug' }, ...change });
    writeFileSync(file, stringify(config));
    try {
      const now = await loadConfig(file, {}, Date.now(), before);
      return { ...now, plan: planReload(before.config, now.config), before };
    } finally {
      writeFileSync(file, text);
    }
  }
  const isToml = (value?: TomlValue): value is TomlTable =>
    typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date);
  const receiver = { kind: 'webhook', url: 'https://127.0.0.1:1/' };
  const secret = { identification: 'a', secret_file: 'no.secret' };

  test.each<[string, string, TomlTable]>([
    [
      'the pair of the admin listener',
      'admin.tls.certificate',
      { admin: { tls: { certificate: 'no.pem', private_key: 'no.key' } } },
    ],
    ['a signer of CMC responses', 'cmc.certificate', { cmc: { certificate: 'no.pem', private_key: 'no.key' } }],
    ['an RA', 'cmc.ra_certificates[0]', { cmc: { ra_certificates: ['no.pem'] } }],
    ['a shared secret', 'cmc.shared_secrets[0].secret_file', { cmc: { shared_secrets: [secret] } }],
    [
      'a key to encrypt for',
      'serverkeygen.keys[0].certificate',
      { serverkeygen: { keys: [{ id: '01', certificate: 'no.pem' }] } },
    ],
    [
      'a key-encryption key',
      'serverkeygen.keys[0].symmetric_key_file',
      { serverkeygen: { keys: [{ id: '01', symmetric_key_file: 'no.key' }] } },
    ],
    [
      'a key-encryption key of a wrong length',
      'serverkeygen.keys[0].symmetric_key',
      { serverkeygen: { keys: [{ id: '01', symmetric_key_file: 'est.toml' }] } },
    ],
    ['a pre-shared secret', 'serverkeygen.password_file', { serverkeygen: { password_file: 'no.secret' } }],
    [
      'a key of checkpoints',
      'audit.checkpoint_key',
      { audit: { checkpoint_key: 'no.key', checkpoint_interval: 3600n } },
    ],
    [
      'a token issuer',
      'auth.jwt.jwks_file',
      { auth: { jwt: { issuer: 'https://a', audience: 'b', jwks_file: 'no.json' } } },
    ],
    [
      'a receiver of notifications',
      'notifications[0].trust_anchors',
      { notifications: [{ ...receiver, name: 'a', trust_anchors: 'no.pem' }] },
    ],
    [
      'the secret of a receiver',
      'notifications[0].signature_key_file',
      { notifications: [{ ...receiver, name: 'a', signature_key_file: 'no.key' }] },
    ],
    [
      'a keytab',
      'gssapi.keytab',
      {
        gssapi: { enabled: true, keytab: 'no.keytab', service_principal: 'HTTP/a@B', default_template: 'CN={primary}' },
      },
    ],
  ])('reports it and applies the rest: %s', async (_, key, change) => {
    const { faults, plan, before } = await reloaded(change);
    expect(faults[0]).toMatchObject({ key, effect: 'what needs it stays as it was' });
    expect(plan).toMatchObject({ live: ['log.level'], restart: [] });
    expect(plan.config).toEqual({ ...before.config, log: { level: 'debug' } });
  });

  test('keeps the other items of a list, and the other lists of a section', async () => {
    writeFileSync(join(dir, 'b.secret'), 'b'.repeat(32));
    const other = { identification: 'b', secret_file: 'b.secret' };
    const { config, faults } = await reloaded({
      cmc: { shared_secrets: [secret, other], ra_certificates: ['no.pem', 'tls/server.pem'] },
    });
    expect(faults.map(({ key }) => key)).toEqual(['cmc.shared_secrets[0].secret_file', 'cmc.ra_certificates[0]']);
    expect(config.cmc).toMatchObject({
      shared_secrets: [{ identification: 'b' }],
      ra_certificates: [join(dir, 'tls/server.pem')],
    });
  });

  test('does not mix a service in force with the new one', async () => {
    const text = readFileSync(file, 'utf8');
    const jwt = { issuer: 'https://a', audience: 'b', jwks_url: 'https://a/keys' };
    writeFileSync(file, `${text}\n${stringify({ auth: { jwt } })}`);
    try {
      const other = { ...jwt, issuer: 'https://other', jwks_url: 'https://other/keys', trust_anchors: 'no.pem' };
      const { config, before } = await reloaded({ auth: { jwt: other } });
      expect(config.auth.jwt).toEqual(before.config.auth.jwt);
    } finally {
      writeFileSync(file, text);
    }
  });
});

describe('CRLs of foreign client CAs', async () => {
  const root = await makeCa('CN=Root');
  const lists = [await makeCrl(root, { revoked: ['0badca11'] }), await makeCrl(root, { revoked: ['05'] })];
  const trust = async (crl: string) => {
    const reader = new MaterialReader(NOW);
    const files = { mode: 'optional', trust_anchors: folder.file('anchors.pem'), crl: folder.file(crl) };
    const loaded = await loadTrust(reader, 'tls.client_auth', files);
    return { crls: loaded?.crls?.map(({ name, list }) => [name, formatName(list.issuer)]), reader };
  };
  beforeAll(() => {
    writeFileSync(folder.file('anchors.pem'), encodePem('CERTIFICATE', root.der));
    writeFileSync(folder.file('both.pem'), lists.map((der) => encodePem('X509 CRL', der)).join(''));
    mkdirSync(folder.file('crls'));
    for (const [index, der] of lists.entries()) writeFileSync(folder.file(`crls/${index}.crl`), der);
    for (const name of ['.hidden.crl', 'README', 'list.crl.bak', 'notes.txt'])
      writeFileSync(folder.file(`crls/${name}`), 'not read');
    symlinkSync('nowhere', folder.file('crls/dangling'));
    for (const name of ['a.PEM', 'b.der', 'c.r0', 'd.r9']) writeFileSync(folder.file(`crls/${name}`), lists[0] ?? '');
  });

  test('a PEM file with several', async () => {
    expect((await trust('both.pem')).crls).toEqual([
      ['both.pem', 'CN=Root'],
      ['both.pem', 'CN=Root'],
    ]);
  });

  test('a folder: only files with the name of a CRL that are not hidden', async () => {
    const { crls, reader } = await trust('crls');
    const names = ['0.crl', '1.crl', 'a.PEM', 'b.der', 'c.r0', 'd.r9'];
    expect(crls).toEqual(names.map((name) => [name, 'CN=Root']));
    expect(reader.faults).toEqual([]);
  });

  test.each([
    ['text', Buffer.from('hello'), 'contains no CRL'],
    ['malformed bytes', Buffer.from('3003020101', 'hex'), 'contains a damaged CRL'],
    ['a certificate', root.der, 'contains a damaged CRL'],
  ])(
    '%s in the folder is a fault that names the file, and costs only what it speaks of',
    async (_, content, reason) => {
      writeFileSync(folder.file('crls/notes.crl'), content);
      const { crls, reader } = await trust('crls');
      rmSync(folder.file('crls/notes.crl'));
      expect(crls).toHaveLength(6);
      expect(reader.faults).toMatchObject([
        { key: 'tls.client_auth.crl', message: expect.stringContaining(`crls/notes.crl ${reason}`) as string },
      ]);
      expect(reader.faults[0]?.effect).toBeDefined();
    },
  );
});
