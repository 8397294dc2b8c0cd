import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';

/** The smallest configuration that is accepted. */
export const MINIMAL = `
[tls]
certificate = "tls/server.pem"
private_key = "tls/server.key"
[tls.client_auth]
trust_anchors = "ca/root.pem"
[admin.tls]
trust_anchors = "admin/ca.pem"
[[ca]]
label = "devices"
default = true
driver = "file"
certificate = "ca/issuing.pem"
[ca.file]
private_key = "ca/issuing.key"
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'estuary-config-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function load(toml: string, env: Record<string, string> = {}) {
  const file = join(folder, 'est.toml');
  await writeFile(file, toml);
  return loadConfig(file, env);
}

/** The lines an operator would read, without the folder. */
async function refused(toml: string, env: Record<string, string> = {}): Promise<string[]> {
  try {
    await load(toml, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.replaceAll(`${folder}/`, '').split('\n');
  }
  return [];
}

describe('contract §2: what the configuration gives', () => {
  test('the smallest configuration is accepted, with the defaults of the contract', async () => {
    const { config, warnings } = await load(MINIMAL);
    expect(warnings).toEqual([]);
    expect(config.est).toMatchObject({ host: '0.0.0.0', port: 9443, retry_after: 30, challenge_password: 'binding' });
    expect(config.otp).toMatchObject({ hash_algorithm: 'argon2id', token_length: 20, max_uses: 1, max_failures: 5 });
    expect(config.admin.tls.mode).toBe('required');
    expect(config.ca[0]?.profile.validity_days).toBe(397);
  });

  test('paths are relative to the folder of the configuration file and absolute afterwards', async () => {
    const { config } = await load(MINIMAL);
    expect(config.tls.certificate).toBe(join(folder, 'tls/server.pem'));
    expect(config.store.path).toBe(join(folder, 'data/est.db'));
  });
});

test('an unknown key is refused and the nearest known one is named', async () => {
  expect(await refused(`${MINIMAL}\n[otp]\ntoken_lenght = 20\n`)).toEqual([
    'est.toml: otp.token_lenght: unknown key (the nearest known one is "otp.token_length")',
  ]);
});
