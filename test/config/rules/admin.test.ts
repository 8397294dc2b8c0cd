/** Findings of start and `--check` about the entries of administrators. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configFolder, PARTS, toml, type ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const HEX = 'a1'.repeat(32);
const client = (keys: string): string => `[[admin.clients]]\n${keys}\n`;
const withoutDefault = PARTS.admin.replace('default_roles = ["admin"]', '');

async function warnings(more: string, admin = withoutDefault): Promise<string[]> {
  const { warnings: found } = await folder.load(toml(more, { admin }));
  return found.map(({ key, message }) => `${key}: ${message}`);
}

test('a fingerprint is a warning: a renewed certificate needs a new entry', async () => {
  const entries = [
    `fingerprint = "sha256:${HEX}"`,
    `spki_sha256 = "${HEX}"`,
    'subject = "CN=Ada"\nissuer = "CN=Admins"',
  ];
  expect(await warnings(entries.map(client).join(''))).toEqual([
    'admin.clients[0].fingerprint: is for one certificate: after a renewal, the administrator needs a new entry (subject with issuer, or spki_sha256 if the key stays the same; or a new entry with the same name)',
  ]);
});

test('roles for every certificate, although entries exist, are a warning', async () => {
  const entry = client(`spki_sha256 = "${HEX}"`);
  expect(await warnings(entry, PARTS.admin)).toEqual([
    'admin.tls.default_roles: gives "admin" to every certificate that no entry of admin.clients names (remove the key)',
  ]);
  expect(await warnings(entry, PARTS.admin.replace('["admin"]', '[]'))).toEqual([]);
  expect(await warnings('', PARTS.admin)).toEqual([]);
});

test('labels limit the roles ra and auditor to labels that exist; other roles cannot be limited', async () => {
  const problems = async (...entries: readonly string[]): Promise<string[]> =>
    (await folder.problems(toml(entries.join(''), { admin: withoutDefault }))).map((one) =>
      one.replace('est.toml: ', ''),
    );
  const key = (letter: string): string => `spki_sha256 = "${letter.repeat(64)}"`;
  const further = '[[label]]\nname = "guests"\nca = "devices"\n';
  const limited = (roles: string, letter = 'a'): string => client(`${key(letter)}\n${roles}\nlabels = ["devices"]`);
  expect(
    await problems(limited('roles = ["ra"]'), limited('roles = ["auditor", "ra"]', 'b'), limited('roles = []', 'c')),
  ).toEqual([]);
  expect(await problems(further, client(`${key('a')}\nroles = ["ra"]\nlabels = ["guests"]`))).toEqual([]);
  const cannot = (roles: string): string =>
    `admin.clients[0].labels: cannot limit ${roles} to labels (roles = ["ra"], ["auditor"] or both)`;
  expect(await problems(limited(''))).toEqual([cannot('"admin"')]);
  expect(await problems(limited('roles = ["ra", "operator", "admin"]'))).toEqual([cannot('"operator" and "admin"')]);
  expect(await problems(client(`${key('a')}\nroles = ["ra"]\nlabels = ["nothing"]`))).toEqual([
    'admin.clients[0].labels: "nothing" is not a label (devices)',
  ]);
  expect(await problems(client(`${key('a')}\nroles = ["ra"]\nlabels = []`))).toEqual([
    expect.stringContaining('admin.clients[0].labels:'),
  ]);
  const token = `[admin.bearer_token]\nenabled = true\ntokens = [{ token_hash = "sha256:${HEX}", description = "x", labels = ["devices"] }]\n`;
  expect(await problems(token)).toEqual([cannot('"admin"').replace('clients', 'bearer_token.tokens')]);
  expect(await problems(token.replace('labels', 'roles = ["auditor"], labels'))).toEqual([]);
});
