/** The operations documents match what they describe: alerts, configuration keys, codes, files and sections. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { IsArray, IsObject, IsUnion } from 'typebox';
import type { TSchema } from 'typebox';
import { keysOf, tablesOf } from '../src/config/keys.ts';
import { AUDIT_TYPES } from '../src/audit/event.ts';
import { configSchema } from '../src/config/schema.ts';
import { ERRORS } from '../src/error-codes.ts';
import { HOLDER_STATES, REPORTED_STATES } from '../src/store/holder-state.ts';
import { ROOT } from './support/root.ts';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const PAGES = [
  'get-started/install',
  'guides/disaster-recovery',
  'guides/renewal',
  'guides/capacity',
  'guides/troubleshooting',
  'guides/hardening',
  'reference/alerts',
  'reference/niap',
];

/** `ca.profile.validity_days`, and of a secret `ca.pkcs11.pin`. */
function* keysIn(schema: TSchema, path: string): Generator<string> {
  if (path !== '') yield path;
  const item = IsArray(schema) ? schema.items : schema;
  const tables = IsUnion(item) ? [...tablesOf(item).values()] : IsObject(item) ? [item] : [];
  for (const table of tables)
    for (const [name, child] of keysOf(table)) yield* keysIn(child, path === '' ? name : `${path}.${name}`);
}
/** Types of audit records can have the name of a table in front, too. */
const known = new Set<string>([...keysIn(configSchema, ''), ...AUDIT_TYPES]);
const topLevel = new Set([...known].filter((key) => !key.includes('.')));

describe('the docs of day two', () => {
  test.each(PAGES)('docs/%s.md is there, and the README leads to it', (page) => {
    expect(existsSync(join(ROOT, `docs/${page}.md`))).toBe(true);
    expect(read('README.md').includes(`docs/${page}.md`)).toBe(true);
  });

  test.each(PAGES)('docs/%s.md names configuration keys that there are', (page) => {
    const named = [...read(`docs/${page}.md`).matchAll(/`([a-z0-9_]+(?:\.[a-z0-9_]+)+)`/g)].map(([, key = '']) => key);
    const keys = named.filter(
      (key) => topLevel.has(key.split('.')[0] ?? '') && !/\.(toml|pem|key|db|log|md)$/.test(key),
    );
    const unknown = keys.filter((key) => !known.has(key) && !known.has(key.replace(/_(file|env)$/, '')));
    expect(unknown).toEqual([]);
  });

  test.each(PAGES)('docs/%s.md names codes that there are', (page) => {
    const codes = new Set(
      [...read('docs/reference/errors.md').matchAll(/`([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)`/g)].map(([, code]) => code),
    );
    const named = [...read(`docs/${page}.md`).matchAll(/`([A-Z][A-Z0-9]+_[A-Z0-9_]+)`/g)].map(([, code = '']) => code);
    expect(named.filter((code) => !codes.has(code))).toEqual([]);
  });
});

const PROSE = globSync(['*.md', 'docs/**/*.md', 'fixtures/**/*.md'], { cwd: ROOT });
test.each(PROSE)('the files under test, fixtures and scripts that %s names exist', (page) => {
  const named = [...read(page).matchAll(/`((?:test|fixtures|scripts)\/[\w./-]+)`/g)].map(([, file = '']) => file);
  expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test('the errors name configuration keys that there are', () => {
  const named = [...read('docs/reference/errors.md').matchAll(/\b[a-z0-9_]+(?:\.[a-z0-9_]+)+\b/g)].map(([key]) => key);
  const keys = named.filter((key) => topLevel.has(key.split('.')[0] ?? '') && !key.endsWith('.md'));
  expect(keys.length).toBeGreaterThan(20);
  const isKnown = (key: string): boolean =>
    [key, key.replace(/_(file|env)$/, ''), `ca.${key}`].some((k) => known.has(k));
  expect(keys.filter((key) => !isKnown(key))).toEqual([]);
});

test.each([
  [
    'the order of cacerts against the SET OF of DER',
    'guides/authentication',
    /first, as clients expect, not .* SET OF/,
  ],
  ['why a challenge has no body', 'guides/authentication', /challenge has no body because/],
  ['that Dogtag serves fullcmc', 'guides/cmc', /It works with .* Dogtag\. CAs behind .* answer 501/],
  ['why not @fastify/basic-auth', 'internals/architecture', /`@fastify\/basic-auth`.* corrupts passwords .* are JSON/],
  ['figures for pkijs, with versions', 'internals/architecture', /`pkijs`.* 3\.4 and 4\.0 .* times the CPU .* 1 %/],
])('the documents say %s', (_what, page, text) => {
  expect(read(`docs/${page}.md`)).toMatch(text);
});

describe('alerts', () => {
  const alerts = [...read('config/alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
  const sections = new Map(
    read('docs/reference/alerts.md')
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.split('\n', 1)[0] ?? '', section] as const),
  );

  test('each has a section, and each section an alert', () => {
    expect([...sections.keys()]).toEqual(alerts);
  });

  test.each(alerts)('%s: its severity, what it means, where to look, what to do', (alert) => {
    const severity = new RegExp(`- alert: ${alert}\\n[^]*?severity: (\\w+)`).exec(read('config/alerts.yml'))?.[1];
    expect(sections.get(alert)).toContain(`Severity: ${severity}.`);
    for (const part of ['**It means:** ', '**Look at:** ', '**Do:** ']) expect(sections.get(alert)).toContain(part);
  });
});

describe('the fleet', () => {
  const states = (file: string, state: RegExp) => [...read(file).matchAll(state)].map(([, name]) => name);

  test('the guide and the console have each state, in its order', () => {
    expect(states('docs/guides/fleet.md', /^\| `(\w+)` \|/gm)).toEqual(HOLDER_STATES);
    expect(states('console/src/pages/fleet.tsx', /\{ name: '(\w+)', kind: '/g).slice(0, HOLDER_STATES.length)).toEqual(
      HOLDER_STATES,
    );
  });

  test('console, notifications and alerts have an event or an alert of each reported state, by its name', () => {
    const [words, notifications] = ['console/src/pages/history-words.ts', 'docs/guides/notifications.md'].map(read);
    for (const state of REPORTED_STATES) {
      expect(words?.toLowerCase()).toContain(`'holder.${state}': () => '${state}: `);
      expect(notifications).toContain(`\`holder.${state}\``);
      expect(read('config/alerts.yml')).toMatch(new RegExp(`estuary_fleet_holders\\{[^}]*state="${state}"`));
    }
  });

  test('the guide has each code that only `check --fleet` has', () => {
    const sources = globSync('src/main/fleet-check/*.ts', { cwd: ROOT });
    const codes = sources.flatMap((file) => states(file, /'([A-Z]+(?:_[A-Z]+)+)'/g));
    const own = [...new Set(codes)].filter((code) => code !== undefined && !(code in ERRORS));
    expect(own.length).toBeGreaterThan(4);
    const guide = read('docs/guides/change-policy.md');
    expect(own.filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
  });
});

describe('the NIAP mapping', () => {
  const rows = read('docs/reference/niap.md')
    .split('\n')
    .filter((line) => /^\| F[A-Z]{2}_/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

  test.each(['FAU', 'FDP', 'FIA', 'FMT', 'FPT', 'FTA'])('%s is there', (family) => {
    expect(rows.filter(([requirement = '']) => requirement.startsWith(`${family}_`)).length).toBeGreaterThan(1);
  });

  test.each(rows)('%s', (_requirement, configuration = '', code = '', proof = '') => {
    expect(configuration).not.toBe('');
    const files = (cell: string): string[] =>
      [...cell.matchAll(/\]\(\.\.\/\.\.\/([^)]+)\)/g)].map(([, file = '']) => file);
    expect(files(code).length).toBeGreaterThan(0);
    expect(files(code).filter((file) => !/^(src|scripts)\//.test(file) || !existsSync(join(ROOT, file)))).toEqual([]);
    const tests = files(proof);
    expect(tests.length).toBeGreaterThan(0);
    for (const file of tests) expect(read(file), file).toMatch(/^ *(test|it)\b/m);
  });
});
