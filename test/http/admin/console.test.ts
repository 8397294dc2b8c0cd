/** The console's files on the admin listener. What the browser makes of them is tested in test/console. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/openssl.ts';
import { type AdminFixture, adminFixture, failure } from './support.ts';

const folder = temporaryFolder();
mkdirSync(folder.file('assets'));
writeFileSync(folder.file('index.html'), '<!doctype html><title>Estuary</title>');
writeFileSync(folder.file('assets/index-abc.js'), 'export {};');
writeFileSync(folder.file('assets/index-abc.js.br'), 'compressed');
writeFileSync(folder.file('secret.txt'), 'not for the public');

const ends: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
  folder.remove();
});

const withConsole = (isOn: boolean, at = folder.file('.')): Promise<AdminFixture> =>
  adminFixture({ settings: { admin: { console: isOn } }, consoleFolder: at, onEnd: (end) => ends.push(end) });

describe('the console', () => {
  let api: AdminFixture;
  beforeAll(async () => {
    api = await withConsole(true);
  });

  it('is at / for everybody, anew each time', async () => {
    const response = await api.raw('GET', '/');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toContain('<title>Estuary</title>');
  });

  it('has assets that never change, compressed where the browser reads that', async () => {
    const plain = await api.raw('GET', '/assets/index-abc.js');
    expect(plain.statusCode).toBe(200);
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(plain.headers['content-type']).toMatch(/javascript/);
    const compressed = await api.raw('GET', '/assets/index-abc.js', { 'accept-encoding': 'gzip, br' });
    expect([compressed.headers['content-encoding'], compressed.body]).toEqual(['br', 'compressed']);
  });

  it.each(['/', '/assets/index-abc.js'])('%s runs nothing of others, in no frame', async (path) => {
    const { headers } = await api.raw('GET', path);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ]),
    );
    expect(policy.join(' ')).not.toMatch(/unsafe|https?:|data:|blob:|\*/);
    expect(headers).toMatchObject({
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    expect(headers['set-cookie']).toBeUndefined();
  });

  it.each([
    '/secret.txt',
    '/index.html',
    '/assets',
    '/assets/',
    '/assets/index-abc.js.br',
    '/assets/..%2fsecret.txt',
    '/assets/%2e%2e%2fsecret.txt',
    '/assets/nope.js',
    '/certificates',
    '/favicon.ico',
  ])('has nothing else: %s', async (path) => {
    const response = await api.raw('GET', path);
    expect([response.statusCode, failure(response).code]).toEqual([404, 'NOT_FOUND']);
  });

  it('changes nothing: other methods are 405', async () => {
    const response = await api.raw('POST', '/');
    expect([response.statusCode, response.headers['allow']]).toEqual([405, 'GET, HEAD']);
  });

  it('is no part of the API, and no way around its authentication', async () => {
    const description = (await api.call('GET', '/admin/openapi.json')).json() as { paths: object };
    expect(
      Object.keys(description.paths).filter((path) => !/^\/(?:admin|auth\/oidc|metrics|healthz|readyz)/.test(path)),
    ).toEqual([]);
    expect((await api.raw('GET', '/admin/otp')).statusCode).toBe(401);
  });
});

describe('[admin] console = false', () => {
  it('removes it whole', async () => {
    const api = await withConsole(false);
    for (const path of ['/', '/assets/index-abc.js'])
      for (const method of ['GET', 'POST']) {
        const response = await api.raw(method, path);
        expect([response.statusCode, failure(response).code], path).toEqual([404, 'NOT_FOUND']);
      }
  });
});

it('a checkout that is not built has no console, and says so', async () => {
  const api = await withConsole(true, folder.file('nowhere'));
  expect((await api.raw('GET', '/')).statusCode).toBe(404);
  expect(api.logged()).toContain('the console is not built');
});
