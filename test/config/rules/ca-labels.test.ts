/** What `[[label]]` may say (docs/guides/names.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { labelsOf } from '../../../src/config/labels.ts';
import { configFolder, toml } from '../support.ts';
import type { ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const label = (name: string, ca: string, ...lines: string[]): string =>
  ['', '[[label]]', `name = "${name}"`, `ca = "${ca}"`, ...lines].join('\n');
const problems = async (text: string): Promise<string[]> =>
  (await folder.problems(toml(text))).map((line) => line.replace('est.toml: ', ''));

test('a further label has its own profile and rules, and inherits nothing', async () => {
  const { config } = await folder.load(
    toml(
      [
        '[ca.profile]',
        'validity_days = 300',
        '[ca.csrattrs]',
        'key_type = "ec:P-384"',
        label('guests', 'devices', 'approval = "manual"', '[label.profile]', 'validity_days = 7'),
        label('staff', 'devices', '[label.profile]', 'renewal_labels = ["devices", "guests"]'),
      ].join('\n'),
    ),
  );
  const [own, guests, staff] = labelsOf(config);
  expect(
    [own, guests, staff].map((label) => [label?.key, label?.nameKey, label?.table.label, label?.of?.label]),
  ).toEqual([
    ['ca[0]', 'ca[0].label', 'devices', undefined],
    ['label[0]', 'label[0].name', 'guests', 'devices'],
    ['label[1]', 'label[1].name', 'staff', 'devices'],
  ]);
  expect(guests?.table).toMatchObject({ approval: 'manual', default: false, profile: { validity_days: 7 } });
  expect(staff?.table).toMatchObject({ approval: 'auto', profile: { validity_days: 397 } });
  expect(own?.table.csrattrs).toBeDefined();
  expect([guests?.table.csrattrs, staff?.table.csrattrs]).toEqual([undefined, undefined]);
});

describe('a label that cannot work is refused', () => {
  test.each<[string, string, string]>([
    [
      'of a CA that is not there',
      label('guests', 'nowhere'),
      'label[guests].ca: "nowhere" is not a CA (the label of one of the [[ca]] tables)',
    ],
    [
      'of another further label',
      label('guests', 'devices') + label('more', 'guests'),
      'label[more].ca: "guests" is not a CA (the label of one of the [[ca]] tables)',
    ],
    [
      "of a CA's name",
      label('devices', 'devices'),
      'label[devices].name: "devices" occurs twice (a different label for each CA)',
    ],
    [
      'of the name of another one',
      label('guests', 'devices') + label('guests', 'devices'),
      'label[1].name: "guests" occurs twice (a different label for each CA)',
    ],
    [
      'of the name of an operation',
      label('simpleenroll', 'devices'),
      'label[simpleenroll].name: "simpleenroll" is the name of an operation (another label)',
    ],
    [
      'that is a default in addition to the CA',
      label('guests', 'devices', 'default = true'),
      'label[guests].default: is true, and so is ca[devices].default (default = true in exactly one)',
    ],
    [
      'with a profile that contradicts itself',
      label('guests', 'devices', '[label.profile]', 'validity_days = 9', 'max_validity_days = 8'),
      'label[guests].profile.validity_days: is more than max_validity_days (at most 8)',
    ],
    [
      'that archives keys',
      label('guests', 'devices', '[label.profile]', 'key_escrow = true'),
      'label[guests].profile.key_escrow: is true, and there is no key recovery authority (false, or kra_urls of a CA behind Dogtag PKI)',
    ],
    [
      'that renews what is no label of its CA',
      label('guests', 'devices', '[label.profile]', 'renewal_labels = ["lab"]'),
      'label[guests].profile.renewal_labels: "lab" is not a label of the same CA (devices, guests)',
    ],
  ])('%s', async (_, text, expected) => {
    expect(await problems(text)).toEqual([expected]);
  });

  test('of a CA behind Dogtag PKI', async () => {
    const dogtag = [
      '[[ca]]',
      'label = "remote"',
      'driver = "dogtag"',
      '[ca.dogtag]',
      'urls = ["https://pki1:8443"]',
      'trust_anchors = "dogtag.pem"',
      'client_certificate = "agent.pem"',
      'client_key = "agent.key"',
    ].join('\n');
    expect(await problems(dogtag + label('guests', 'remote'))).toEqual([
      'label[guests].ca: "remote" has the remote driver "dogtag", which has one profile only (a CA whose key this server has)',
    ]);
  });
});

test('what a CA is warned of, a further label is too', async () => {
  const rules = ['client_issuers = ["any"]', '[label.profile]', 'mtls_subject = "any"'];
  const { warnings } = await folder.load(toml(label('guests', 'devices', ...rules)));
  const keys = warnings.map(({ key }) => key);
  expect(keys).toContain('label[guests].client_issuers');
  expect(keys).toContain('label[guests].profile.mtls_subject');
});

test('with profile = "niap" no certificate of a further label is backdated', async () => {
  const text = toml(label('guests', 'devices', '[label.profile]', 'backdate_seconds = 60'));
  const found = await folder.problems(`profile = "niap"\n${text}`);
  expect(found.filter((line) => line.includes('backdate'))).toEqual([
    'est.toml: label[guests].profile.backdate_seconds: is 60: certificates would be valid from before they were issued, which profile = "niap" refuses (0)',
  ]);
});

describe('the labels of a shared secret of CMC', () => {
  const secret = (ca: string): string =>
    ['', '[[cmc.shared_secrets]]', 'identification = "d"', 'secret_env = "SECRET"', `ca = ${ca}`].join('\n');
  const of = (text: string): Promise<string[]> =>
    folder.problems(toml(text), { SECRET: 'a secret that is long enough' });

  test('are those of CAs and further ones', async () => {
    expect(await of(label('guests', 'devices') + secret('["devices", "guests"]'))).toEqual([]);
  });

  test.each([
    ['an unknown one', '["devices", "guest"]', 'cmc.shared_secrets[0].ca: "guest" is not a label (devices, guests)'],
    ['none', '[]', expect.stringMatching(/^cmc\.shared_secrets\[0\]\.ca: /)],
  ])('%s is refused', async (_, ca, problem) => {
    const problems = await of(label('guests', 'devices') + secret(ca));
    expect(problems.map((line) => line.replace(/^est\.toml(:\d+)?: /, ''))).toEqual([problem]);
  });
});
