import { afterAll, beforeAll, expect, test } from 'vitest';
import { packConfig, unpackConfig } from '../../src/config/transfer.ts';
import type { Config } from '../../src/config/schema.ts';
import { configFolder, toml, type ConfigFolder } from './support.ts';

let folder: ConfigFolder;
let config: Config;
beforeAll(async () => {
  folder = await configFolder();
  const more = `
[otp]
hash_algorithm = "sha256-hmac"
hmac_key_env = "KEY"
[gssapi.principal_mapping]
"secret" = "CN=a"
"list" = "CN=b"
"table" = "CN=c"`;
  ({ config } = await folder.load(toml(more), { KEY: '\u0000ÿ'.repeat(20) }));
});
afterAll(() => folder.remove());

test('issue 11.16: a configuration comes out of JSON as it went in, secrets and odd names included', () => {
  const packed: unknown = JSON.parse(JSON.stringify(packConfig(config)));
  const unpacked = unpackConfig(packed);
  expect(unpacked).toEqual(config);
  expect(unpacked.otp.hmac_key?.reveal()).toEqual(config.otp.hmac_key?.reveal());
  expect(Object.keys(unpacked.gssapi.principal_mapping)).toEqual(Object.keys(config.gssapi.principal_mapping));
  expect(Object.isFrozen(unpacked.otp)).toBe(true);
});

test.each([null, 7, {}, { table: [] }, { table: [[1, 2]] }, { list: 'x' }, { table: [['est', { port: 1 }]] }])(
  '%j is no packed configuration',
  (packed) => {
    expect(() => unpackConfig(packed)).toThrow(TypeError);
  },
);
