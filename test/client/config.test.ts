/** client.toml reports all its problems at once. */
import { describe, expect, test } from 'vitest';
import { readClientConfig } from '../../src/client/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { parseToml } from '../../src/config/toml.ts';

const GOOD = `[server]
url = "https://est.example"
[[certificate]]
folder = "web"
subject = "CN=web"
`;

function read(text: string) {
  const parsed = parseToml(text);
  if ('problem' in parsed) throw new Error(parsed.problem.message);
  return readClientConfig(parsed.document, '/etc/estuary-client/client.toml');
}

function problems(text: string): string[] {
  try {
    read(text);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n').map((line) => line.replace('/etc/estuary-client/client.toml: ', ''));
  }
}

describe('client.toml', () => {
  test('a private_key is a path, relative to the file, or the URI of a key in the token', () => {
    const key = (text: string): string | undefined =>
      read(
        `${GOOD}certificate = "a.pem"\nprivate_key = "${text}"\n[token]\nmodule = "p.so"\nlabel = "t"\npin_env = "P"`,
      ).certificate[0]?.private_key;
    expect(key('a.key')).toBe('/etc/estuary-client/a.key');
    expect(key('pkcs11:token=t;id=%01%02')).toBe('pkcs11:token=t;id=%01%02');
  });

  test('defaults, and paths relative to the file', () => {
    const [one] = read(GOOD).certificate;
    expect(one).toMatchObject({
      name: 'web',
      folder: '/etc/estuary-client/web',
      new_key: true,
      mode: '0600',
      renew_at: 67,
    });
  });

  test.each([
    ['', ['server.url: is missing', 'certificate: is missing']],
    [`${GOOD}[sever]`, ['sever: unknown key (the nearest known one is "server")']],
    [`${GOOD}[proxy]`, ['proxy: unknown key (known are server, token, certificate, ']],
    [`${GOOD}dns_name = []`, ['certificate[0].dns_name: unknown key (the nearest known one is "dns_names")']],
    [`${GOOD}key_type = "rsa:1024"`, ['certificate[0].key_type: "rsa:1024" is not known']],
    [
      `${GOOD}renew_at = 99`,
      ['certificate[0].renew_at: is 99 (a whole number of percent of the lifetime from 5 to 95)'],
    ],
    [`${GOOD}mode = "0644"`, ['certificate[0].mode: "0644" gives access to others']],
    [`${GOOD}certificate = "a.pem"`, ['certificate[0].private_key: certificate and private_key require each other']],
    [`${GOOD}otp_file = "a"\notp_env = "B"`, ['certificate[0].otp_env: otp_file and otp_env exclude each other']],
    [`${GOOD}ip_addresses = ["300.1.1.1"]`, ['certificate[0].ip_addresses[0]: ']],
    [
      `${GOOD}new_key = 1\nreload = 2`,
      ['certificate[0].new_key: is a whole number', 'certificate[0].reload: is a whole number'],
    ],
    [
      `${GOOD}[[certificate]]\nfolder = "web"\nsubject = "CN=b"`,
      [
        'certificate[1].folder: another certificate uses this folder',
        'certificate[1].name: another certificate has the name "web"',
      ],
    ],
    [`${GOOD}key_store = "token"`, ['certificate[0].key_store: is "token", and no token is configured ([token])']],
    [
      `${GOOD}key_store = "token"\nformats = ["pkcs12"]\n[token]\nmodule = "p.so"\nlabel = "t"`,
      ['certificate[0].formats: a key cannot leave its token', 'token.pin_file: exactly one of pin_file and pin_env'],
    ],
    [
      `${GOOD}certificate = "a.pem"\nprivate_key = "pkcs11:id=%01?pin-value=1234"\n[token]\nmodule = "p.so"\nlabel = "t"\npin_env = "P"`,
      ['certificate[0].private_key: is not the URI of a key with an id, or contains a PIN'],
    ],
    [
      GOOD.replace('[server]', '[server]\nmin_version = "TLSv1.3"\nmax_version = "TLSv1.2"'),
      ['server.min_version: is newer'],
    ],
  ])('%j: %j', (text, expected) => {
    const found = problems(text);
    expect(found).toHaveLength(expected.length);
    for (const [index, message] of expected.entries()) expect(found[index]).toContain(message);
  });
});
