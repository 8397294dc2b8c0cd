/** Configured files are read, parsed and checked once, in one place, for start, `--check` and reload. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
    const reload = (now: number) => loadConfig(file, {}, now, first.material.memory);
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
    const kept = await broken('tls/server.key', 'nothing', () => loadConfig(file, {}, NOW, first.material.memory));
    expect(kept.material.tls).toBe(first.material.tls);
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
