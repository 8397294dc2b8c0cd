/**
 * The compose file of docs/guides/postgresql.md, which no test can start: checked against the configuration, HAProxy,
 * PostgreSQL and bash.
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { parsePostgresUrl } from '../src/config/postgres-url.ts';
import { run, runAny } from './support/command.ts';
import { section } from './support/estuary.ts';
import { findCommand, requires } from './support/requires.ts';
import { ROOT } from './support/root.ts';
import { NODE, SERVER } from './support/server-process.ts';
import { removeFolder } from './support/folders.ts';

const FILE = join(ROOT, 'config/compose-postgresql.yml');
const TEXT = readFileSync(FILE, 'utf8');
const NODES = ['est-1', 'est-2', 'est-3'];

/** What stands at a path of a parsed file. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (one, key) => (typeof one === 'object' && one !== null ? Reflect.get(one, key) : undefined),
    value,
  );
}
function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== 'string') throw new Error(`no text at ${path.join('.')}`);
  return found;
}
const keysOf = (value: unknown): readonly string[] =>
  typeof value === 'object' && value !== null ? Object.keys(value) : [];

/** Compose takes `$$` for a dollar. */
const scriptOf = (compose: unknown, service: string): string =>
  textAt(compose, 'services', service, 'command', 0).replaceAll('$$', '$');

describe('config/compose-postgresql.yml', () => {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-compose-'));
  const compose: unknown = parseYaml(TEXT, { merge: true, uniqueKeys: true });
  beforeAll(async () => {
    // As its first lines say: what they run, and what they have changed.
    const commands = [...TEXT.matchAll(/^# {3}((?:scripts\/|for ).*)$/gm)].map(([, line = '']) => line);
    expect(commands).toHaveLength(2);
    for (const command of commands)
      await run('bash', ['-c', command.replace('scripts/', `${ROOT}/scripts/`)], { cwd: dir, timeout: 240_000 });
    const path = join(dir, 'nodes/est.toml');
    const config = parse(readFileSync(path, 'utf8'));
    const changes = [...TEXT.matchAll(/^# {3}# {3}\[(\w+)\] +(.*)$/gm)];
    expect(changes.map(([, name]) => name)).toEqual(['store', 'otp', 'admin', 'audit']);
    for (const [, name = '', pairs = ''] of changes) {
      const values = parse(pairs.replaceAll(', ', '\n'));
      if (name === 'store') config['store'] = values;
      else Object.assign(section(config, name), values);
    }
    writeFileSync(path, stringify(config));
  });
  afterAll(() => removeFolder(dir));

  test.each(NODES)('%s reads the configuration that is mounted, with a unique name', async (name) => {
    expect(at(compose, 'services', name, 'volumes')).toEqual(['../nodes:/etc/estuary:ro']);
    expect(textAt(compose, 'services', name, 'hostname')).toBe(name);
    expect(at(compose, 'services', name, 'depends_on', 'primary', 'condition')).toBe('service_healthy');
    const environment = at(compose, 'services', name, 'environment');
    const env = Object.fromEntries(keysOf(environment).map((key) => [key, textAt(environment, key)]));
    const args = ['check', '--offline', '--config', join(dir, 'nodes/est.toml')];
    const { code, output } = await runAny(NODE, [SERVER, ...args], { env });
    expect(output).toContain('the configuration is valid');
    expect(code).toBe(0);
    // The image runs `--config /etc/estuary/est.toml`.
    expect(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')).toContain('CMD ["--config", "/etc/estuary/est.toml"]');
  });

  test('the database of the nodes is the one that is made, first its primary', () => {
    const url = parsePostgresUrl(textAt(compose, 'services', 'est-1', 'environment', 'ESTUARY_DATABASE'));
    for (const service of ['primary', 'standby']) {
      expect(textAt(compose, 'services', service, 'environment', 'POSTGRES_USER')).toBe(url?.user);
      expect(textAt(compose, 'services', service, 'environment', 'POSTGRES_PASSWORD')).toBe(url?.password);
      expect(textAt(compose, 'services', service, 'environment', 'POSTGRES_DB')).toBe(url?.database);
    }
    expect(url?.hosts.map(({ host }) => host)).toEqual(['primary', 'standby']);
    expect(scriptOf(compose, 'standby')).toContain(`export PGPASSWORD=${url?.password ?? ''}\n`);
  });

  test('every volume, configuration and service that is named is there', () => {
    const services = keysOf(at(compose, 'services'));
    expect([...services].sort()).toEqual(['balancer', ...NODES, 'primary', 'standby']);
    const named = services.flatMap((name) => {
      const needs = at(compose, 'services', name, 'depends_on');
      return Array.isArray(needs) ? needs.map(String) : keysOf(needs);
    });
    expect(named.filter((name) => !services.includes(name))).toEqual([]);
    for (const name of ['primary', 'standby'])
      expect(at(compose, 'services', name, 'volumes')).toEqual([`${name}:/var/lib/postgresql/data`]);
    expect(keysOf(at(compose, 'volumes'))).toEqual(['primary', 'standby']);
    expect(at(compose, 'services', 'balancer', 'configs', 0, 'source')).toBe('haproxy');
  });

  test.each(['primary', 'standby'])('bash reads the script of the %s', async (name) => {
    expect(at(compose, 'services', name, 'entrypoint')).toEqual(['bash', '-c']);
    await run('bash', ['-n', '-c', scriptOf(compose, name)]);
  });

  test.skipIf(!requires('haproxy'))(
    'HAProxy takes its configuration, and sends to the ports of the nodes',
    async () => {
      const config = textAt(compose, 'configs', 'haproxy', 'content');
      const [est, admin] = [9443, 9444];
      for (const name of NODES) expect(config).toContain(`server ${name} ${name}:${est}\n`);
      expect(config).toContain(` port ${admin} `);
      expect(readFileSync(join(dir, 'nodes/est.toml'), 'utf8')).toMatch(/^port = 9443$[\s\S]*^port = 9444$/m);
      // There is nobody of these names here.
      mkdirSync(join(dir, 'haproxy'));
      const file = join(dir, 'haproxy/haproxy.cfg');
      writeFileSync(file, config.replaceAll(/^( *server \S+) \S+/gm, `$1 127.0.0.1:${est}`));
      await run(findCommand('haproxy') ?? 'haproxy', ['-c', '-f', file]);
    },
  );
});
