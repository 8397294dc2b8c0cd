/** The rules on `[[ca]]` tables with the drivers est, acme, command and pkcs11. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configFolder, toml, type ConfigFolder } from '../support.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { loadConfigOnly } from '../../../src/config/load.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

/** What is wrong with a configuration whose second CA is this one. */
async function problems(table: string, more = ''): Promise<string[]> {
  const anchors = table.startsWith('driver = "pkcs11"') ? '' : 'upstream_trust_anchors = "ca/root.pem"\n';
  const edge = `[[ca]]\nlabel = "edge"\n${anchors}${table}`;
  await folder.write('est.toml', `${toml(more)}\n${edge}\n`);
  try {
    await loadConfigOnly(`${folder.path}/est.toml`, {});
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ key, message }) => `${key}: ${message}`);
    throw error;
  }
}

const est =
  'driver = "est"\n[ca.est]\nurl = "https://ca.example.com/.well-known/est"\nusername = "ra"\npassword_file = "password"';
const acme = (more: string): string =>
  `driver = "acme"\n[ca.acme]\ndirectory = "https://acme.example.com/dir"\naccount_key_file = "account.key"\n${more}`;
const command = 'driver = "command"\n[ca.command]\nissue = ["/usr/local/libexec/issue"]';

describe('a remote driver', () => {
  beforeAll(() => folder.write('password', 'secret\n'));

  test('est and command need no more than where the CA is', async () => {
    expect(await problems(est)).toEqual([]);
    expect(await problems(command)).toEqual([]);
  });

  const dogtag =
    'driver = "dogtag"\n[ca.dogtag]\nurls = ["https://pki:8443"]\ntrust_anchors = "ca/root.pem"\nprofile = "x"\nclient_certificate = "ra.pem"\nclient_key = "ra.key"';

  test.each([
    ['est', est],
    ['acme', acme('challenge = "none"')],
    ['command', command],
    ['dogtag', dogtag],
  ])('%s refuses subject.template and san.add, because the CSR goes on as it was signed', async (_, table) => {
    const profile = '[ca.profile]\nsubject.template = "CN={id}"\nsan.add = ["dns:{id}.example.com"]\nsan.dns = [".*"]';
    const found = await problems(`${table}\n${profile}`);
    for (const key of ['subject.template', 'san.add'])
      expect(found).toContainEqual(
        expect.stringMatching(`profile.${key}: is given, and (the upstream CA|Dogtag) uses the names of the CSR`),
      );
  });

  test('acme: contact is a list of mailto URLs (RFC 8555 §7.3)', async () => {
    const asked = async (contact: string) => problems(acme(`challenge = "none"\ncontact = ["${contact}"]`));
    expect((await asked('mailto:pki@example.com')).join()).not.toContain('contact');
    for (const wrong of ['pki@example.com', 'tel:1', 'mailto:'])
      expect((await asked(wrong)).join()).toContain('acme.contact[0]');
  });

  test('est without credentials is refused', async () => {
    const [found] = await problems(est.replace(/username[^]*/, ''));
    expect(found).toContain('est.client_certificate: is missing, and so is username');
  });

  const certificate = 'client_certificate = "ca/root.pem"';
  const token =
    '[ca.est.pkcs11]\nmodule = "ca/root.pem"\nengine = "ca/root.pem"\ntoken_label = "ra"\npin_file = "password"';

  test.each([
    [
      'a key file, too',
      `${certificate}\nclient_key = "ca/root.key"\n${token}\nkey_label = "ra"`,
      'pkcs11: is given, and so is client_key',
    ],
    ['no certificate', `${token}\nkey_label = "ra"`, 'pkcs11: is given without client_certificate'],
    ['no name of the key', `${certificate}\n${token}`, 'pkcs11.key_label: is missing, and so is key_id'],
    [
      'two names of the key',
      `${certificate}\n${token}\nkey_label = "ra"\nkey_id = "01"`,
      'pkcs11.key_label: is given, and so is key_id',
    ],
    [
      'a URI and a name',
      `${certificate}\n${token}\nuri = "pkcs11:object=ra"`,
      'pkcs11.uri: is given, and so is token_label',
    ],
    ['a slot', `${certificate}\n${token}\nkey_label = "ra"\nslot = 1`, 'pkcs11.slot: unknown key'],
  ])('a key of est in a token is refused with %s', async (_, more, message) => {
    expect(await problems(est.replace(/username[^]*/, more))).toContainEqual(expect.stringContaining(`est.${message}`));
    expect(await problems(est.replace(/username[^]*/, `${certificate}\n${token}\nkey_id = "01"`))).toEqual([]);
  });

  test('a program is named by its absolute path', async () => {
    const [found] = await problems(command.replace('/usr/local/libexec/issue', 'issue'));
    expect(found).toContain('"issue" is not an absolute path');
  });

  test('acme with names that are free is refused: the account may get any', async () => {
    const hook = 'dns_hook = ["/usr/local/libexec/dns-01"]';
    const [found, ...others] = await problems(acme(hook));
    expect(found).toContain('profile.san.dns: is missing, and requesters are not bound to names');
    expect(others).toEqual([]);
    expect(await problems(`${acme(hook)}\n[ca.profile]\nsan.dns = ["[a-z]+\\\\.example\\\\.com"]`)).toEqual([]);
  });

  test('dns-01 needs its hook, and external account binding its key', async () => {
    const found = await problems(`${acme('eab_kid = "1"')}\n[ca.profile]\nsan.dns = ["x"]`);
    expect(found.map((problem) => problem.split(': ')[0]?.split('.').slice(-2).join('.')).sort()).toEqual([
      'acme.dns_hook',
      'acme.eab_kid',
    ]);
  });

  describe('a CA key in a token', () => {
    const at = (more: string): string =>
      `driver = "pkcs11"\ncertificate = "ca/root.pem"\n[ca.pkcs11]\n${more}`.replaceAll(
        'MODULE',
        'module = "ca/root.pem"',
      );
    const named = 'token_label = "est"\nkey_label = "k"';

    test.each([
      `MODULE\n${named}`,
      'MODULE\nuri = "pkcs11:token=est;object=k"\npin_file = "password"',
      'uri = "pkcs11:token=est;object=k?module-path=ca/root.pem&pin-source=password"',
      'MODULE\nslot = 9223372036854775807\nkey_id = "01:02"',
      'MODULE\nslot = "0xffffffffffffffff"\nkey_id = "%01%02"',
    ])('may be named by %j', async (table) => {
      expect(await problems(at(table))).toEqual([]);
    });

    test.each([
      [`MODULE\n${named}\nuri = "pkcs11:object=k"`, 'pkcs11.uri: is given, and so is token_label'],
      ['MODULE\nuri = "pkcs11:object=k"\nkey_id = "01"', 'pkcs11.uri: is given, and so is key_id'],
      ['MODULE\nuri = "pkcs11:object=k?module-path=/x.so"', 'pkcs11.module: is given, and so is module-path in uri'],
      [
        'MODULE\nuri = "pkcs11:object=k?pin-source=password"\npin_file = "password"',
        'pkcs11.pin_file: is given, and so is pin-source in uri',
      ],
      [
        'MODULE\nuri = "pkcs11:object=k?pin-source=password"\npin_env = "PIN"',
        'pkcs11.pin_env: is given, and so is pin-source in uri',
      ],
      ['MODULE\nuri = "pkcs11:object=k?pin-value=1234"', 'pkcs11.uri: contains pin-value: a secret must not be in'],
      ['MODULE\nuri = "pkcs11:object=k;x-y=1"', 'pkcs11.uri: has the attribute "x-y", which is not supported'],
      ['uri = "pkcs11:object=k"', 'pkcs11.module: is missing'],
      ['MODULE\nslot = -1\nkey_id = "01"', 'pkcs11.slot: "-1" is not a slot ID'],
      ['MODULE\nslot = 1\nkey_id = "0x1"', 'pkcs11.key_id: "0x1" has the wrong form'],
    ])('is refused with %j', async (table, message) => {
      const found = await problems(at(table));
      expect(found).toContainEqual(expect.stringContaining(message));
      expect(found.join()).not.toContain('1234');
    });
  });
});
