/** `--check` and the start warn of every setting that lets one requester take another's name. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configFolder, PARTS, toml, type ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const OTP = '[otp]\nenabled = true\n';
const GSSAPI = '[gssapi]\nenabled = true\ngssproxy = true\nservice_principal = "HTTP/est.example.com@EXAMPLE.COM"\n';
const SECRETS = '[[cmc.shared_secrets]]\nidentification = "d"\nsecret_env = "SECRET"\n';
const LAB = '[[label]]\nname = "lab"\nca = "devices"\napproval = "manual"\n';
const ca = (more: string): string => toml('', { ca: PARTS.ca.replace('[ca.file]', `${more}\n[ca.file]`) });
const manual = PARTS.ca.replace('[ca.file]', 'approval = "manual"\n[ca.file]');

const warnings = async (text: string): Promise<string[]> => {
  const loaded = await folder.load(text, { SECRET: 'a secret that is long enough' });
  return loaded.warnings.map(({ key, message }) => `${key}: ${message}`);
};

describe('a setting that lets one requester take the name of another is a warning', () => {
  test.each<[string, string, string]>([
    [
      'a token for any name',
      toml(OTP),
      'otp.bind_client_id: is "off": anyone with a token can ask for any name, including those of others ("cn" or "san")',
    ],
    [
      'a shared secret for any name',
      toml(SECRETS),
      'otp.bind_client_id: is "off": anyone with a shared secret can ask for any name, including those of others ("cn" or "san")',
    ],
    ...(
      [
        ['ldap', 'url = "ldaps://a"\nuser_dn = "uid={username},dc=example"'],
        ['jwt', 'issuer = "i"\naudience = "est"\njwks_url = "https://idp.example/jwks"'],
      ] as const
    ).map(([method, keys]): [string, string, string] => [
      `${method} for any name`,
      toml(`[auth.${method}]\n${keys}\nbind = "off"\n`),
      `auth.${method}.bind: is "off": each requester can ask for any name, including those of others ("cn" or "san")`,
    ]),
    [
      'certificates of other labels',
      ca('client_issuers = ["own", "any"]'),
      'ca[devices].client_issuers: contains "any": a certificate of another label can get its names at "devices" too ("own", "anchors", or files)',
    ],
    [
      'any name for a certificate',
      ca('profile.mtls_subject = "any"'),
      'ca[devices].profile.mtls_subject: is "any": anyone with a certificate can ask for any name, including those of others ("auto" or "same")',
    ],
    [
      'one subject for everybody',
      ca('profile.subject.template = "CN=all"'),
      'ca[devices].profile.subject.template: gives all requesters the same name (a placeholder in it, such as {id})',
    ],
    [
      'one more name for everybody',
      ca('profile.san.add = ["dns:{id}.example.com", "dns:www.example.com"]'),
      'ca[devices].profile.san.add: gives all requesters the same name (a placeholder in it, such as {id})',
    ],
    [
      'a token for any SAN in addition to its CN',
      ca('profile.subject.template = "CN={id}"\nprofile.san.dns = ["dev-[0-9]{2}"]') + OTP,
      'otp.bind_client_id: is "off": anyone with a token can ask for any name, including those of others ("cn" or "san")',
    ],
    [
      'a change of names',
      ca('profile.allow_subject_change = true'),
      'ca[devices].profile.allow_subject_change: is true: anyone with a certificate can change to any name, including those of others (false)',
    ],
  ])('%s', async (_, text, warning) => {
    expect(await warnings(text)).toEqual([warning]);
  });

  test.each<[string, string]>([
    ['tokens bound to the CN', toml(`${OTP}bind_client_id = "cn"`)],
    ['tokens bound to a SAN', toml(`${OTP}bind_client_id = "san"`)],
    ['a person who approves each request', toml(OTP, { ca: manual })],
    ['no label where tokens count', ca(`auth.methods = ["mtls"]`) + OTP],
    ['shared secrets, and no full CMC', toml(`${SECRETS}[est]\nfullcmc = false`)],
    ['shared secrets where they do not count', ca('auth.methods = ["mtls"]') + SECRETS],
    ['shared secrets for a label where each request is approved', `${toml(LAB)}${SECRETS}ca = ["lab"]\n`],
    ['any issuer where certificates do not count', ca('client_issuers = ["any"]\nauth.methods = ["gssapi"]')],
    [
      'names that follow from who asks, by a template',
      ca('profile.subject.template = "CN={id}"\nprofile.san.allowed = []\nprofile.mtls_subject = "any"') + OTP,
    ],
    [
      'names that follow from who asks, by patterns',
      ca(
        'profile.subject.patterns = { CN = "{id}" }\nprofile.san.allowed = ["dns"]\nprofile.san.dns = ["{id}", "{id}[.]example[.]com"]',
      ) + OTP,
    ],
    [
      'a service that decides',
      ca('authorization.url = "https://inventory.example.com/"\nprofile.allow_subject_change = true') + OTP,
    ],
    ['principals without an instance, by their name', toml(`${GSSAPI}default_template = "CN={primary}"`)],
  ])('%s: no warning', async (_, text) => {
    expect(await warnings(text)).toEqual([]);
  });
});
