/** The rules on `[ca.profile.certificate_authority]`. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { initTwoTiers } from '../../../src/main/commands/ca-folder.ts';
import { configFolder, PARTS, type ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const problems = (rules: string, authority: string): Promise<string[]> => {
  const ca = `${PARTS.ca}\n[[label]]\nname = "edge"\nca = "devices"\n${rules}\n[label.profile.certificate_authority]\n${authority}`;
  return folder.problems([PARTS.tls, PARTS.clientAuth, PARTS.admin, ca].join('\n'));
};

const MANUAL = 'approval = "manual"';

test('manual approval and a permitted name are needed', async () => {
  expect(await problems(MANUAL, 'permitted_dns = ["edge.example.com"]')).toEqual([]);
  expect(await problems('', 'permitted_ip = ["10.0.0.0/8"]')).toEqual([
    expect.stringMatching(/label\[edge\]\.approval: is "auto", and the label issues CA certificates/),
  ]);
  expect(await problems(MANUAL, 'path_length = 1')).toEqual([
    expect.stringMatching(/certificate_authority: has no permitted names \(permitted_dns, /),
  ]);
});

test.each([
  ['permitted_dns = ["*.example.com"]', '"*.example.com" is not a host name'],
  ['permitted_ip = ["10.0.0.1/8"]', '"10.0.0.1/8" has address bits beyond its prefix length'],
  ['permitted_email = ["a@example.com"]', '"a@example.com" is not a host name'],
  ['permitted_uri = ["https://example.com"]', '"https://example.com" is not a host name'],
])('%s is refused', async (line, reason) => {
  expect(await problems(MANUAL, line)).toEqual([expect.stringContaining(reason)]);
});

test('a remote CA decides this itself', async () => {
  const remote = `${PARTS.ca}\n[[ca]]\nlabel = "up"\ndriver = "command"\nupstream_trust_anchors = "x.pem"\n${MANUAL}
[ca.command]\nissue = ["/bin/true"]\n[ca.profile.certificate_authority]\npermitted_dns = ["example.com"]`;
  const found = await folder.problems([PARTS.tls, PARTS.clientAuth, PARTS.admin, remote].join('\n'));
  expect(found).toEqual([
    expect.stringContaining('certificate_authority: is given, and the profile of the upstream CA'),
  ]);
});

test.each([
  ['0', 0, false],
  ['1', 0, true],
  ['1', 1, false],
  ['2', 1, true],
])('a CA with the path length %s and device CAs with %i: accepted %s', async (above, below, isAccepted) => {
  const dir = join(folder.path, `pki-${above}-${below}`);
  const files = { root: join(dir, 'root'), issuing: join(dir, 'issuing') };
  const none = {
    days: undefined,
    'root-days': undefined,
    'root-passphrase-file': undefined,
    subject: undefined,
    'root-subject': undefined,
  };
  const options = {
    ...none,
    ...files,
    'path-length': above,
    'permitted-dns': [],
    'permitted-ip': [],
    'key-type': undefined,
  };
  const context = {
    env: {},
    out: () => true,
    err: () => true,
    now: Date.now,
    signals: { pass: () => undefined, release: () => undefined },
  };
  await initTwoTiers(options, context);
  const ca = `[[ca]]\nlabel = "edge"\ndefault = true\ndriver = "file"\ncertificate = "${files.issuing}/issuing.pem"
chain = "${files.issuing}/chain.pem"\n${MANUAL}\n[ca.file]\nprivate_key = "${files.issuing}/issuing.key"
[ca.profile.certificate_authority]\npath_length = ${below}\npermitted_dns = ["example.com"]`;
  const found = await folder.problems([PARTS.tls, PARTS.clientAuth, PARTS.admin, ca].join('\n'), {}, {});
  expect(found.filter((line) => line.includes('path_length')).length).toBe(isAccepted ? 0 : 1);
});
