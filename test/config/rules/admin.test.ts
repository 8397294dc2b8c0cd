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
    (await folder.problems(toml(entries.join(''), { admin: withoutDefault }))).map((problem) =>
      problem.replace('est.toml: ', ''),
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

test('[admin.oidc] needs openid, roles, a redirect URL to the callback, and a mode in which certificates are not required', async () => {
  await folder.write('secret', 'x');
  const oidc = (more = '', roles = '[admin.oidc.roles]\nteam = { roles = ["ra"], labels = ["devices"] }'): string =>
    `[admin.oidc]\nissuer = "https://idp.example"\nclient_id = "x"\nclient_secret_file = "secret"\n${more}\n${roles}\n`;
  const url = 'redirect_url = "https://est.example:9444/auth/oidc/callback"\n';
  const admin = PARTS.admin.replace('[admin.tls]', '[admin.tls]\nmode = "optional"');
  const problems = async (text: string, parts: Partial<typeof PARTS> = { admin: admin as typeof PARTS.admin }) =>
    (await folder.problems(toml(text, parts))).map((problem) => problem.replace('est.toml: ', ''));
  expect(await problems(oidc(url))).toEqual([]);
  expect(await problems(oidc(url), {})).toEqual([
    'admin.oidc: has no effect while admin.tls.mode is "required": only certificates count then ("optional" or "none")',
  ]);
  expect(await problems(oidc(`${url}scopes = ["profile"]`))).toEqual([
    'admin.oidc.scopes: lacks "openid" (a list with "openid")',
  ]);
  expect(await problems(oidc(url, '[admin.oidc.roles]\n'))).toEqual([
    'admin.oidc.roles: is empty: nobody would have a role (values of roles_claim with roles)',
  ]);
  expect(await problems(oidc(url, '[admin.oidc.roles]\nteam = { labels = ["lab"] }'))).toEqual([
    'admin.oidc.roles.team.labels: cannot limit "admin" to labels (roles = ["ra"], ["auditor"] or both)',
    'admin.oidc.roles.team.labels: "lab" is not a label (devices)',
  ]);
  expect(await problems(oidc(url.replace('/auth/oidc', '')))).toEqual([
    expect.stringMatching(/^admin\.oidc\.redirect_url: /),
  ]);
  expect(await problems(oidc(url.replace('https', 'http')))).toEqual([
    expect.stringMatching(/^admin\.oidc\.redirect_url: /),
  ]);
  const without = { admin: '[admin.tls]\nmode = "none"' as typeof PARTS.admin };
  expect(await problems(oidc(url), without)).toEqual([]);
});

test('profile = "niap" refuses [admin.oidc]', async () => {
  await folder.write('secret', 'x');
  const text = `[admin.oidc]\nissuer = "https://idp.example"\nclient_id = "x"\nclient_secret_file = "secret"
redirect_url = "https://est.example:9444/auth/oidc/callback"\n[admin.oidc.roles]\nteam = { roles = ["ra"] }\n`;
  const admin = PARTS.admin.replace('[admin.tls]', '[admin.tls]\nmode = "optional"');
  expect(await folder.problems(`profile = "niap"\n${toml(text, { admin })}`)).toContainEqual(
    expect.stringContaining(
      'admin.oidc: is set: administrators would sign in at an OpenID provider, which profile = "niap" refuses (client certificates or bearer tokens)',
    ),
  );
});
