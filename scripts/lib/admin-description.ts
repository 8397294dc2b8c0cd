/** The OpenAPI description of the admin API, and the TypeScript types of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import openapiTypes, { astToString } from 'openapi-typescript';
import type { AdminDependencies } from '../../src/http/admin/dependencies.ts';
import { createAdminApp } from '../../src/http/admin/listener.ts';
import { describeApi } from '../../src/http/admin/openapi.ts';
import { createLogger } from '../../src/log.ts';
import { Metrics } from '../../src/metrics.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import { VERSION } from '../../src/version.ts';

/** As a server with the default settings shows it. Nothing is called: the routes alone are registered. */
export async function adminDescription(): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-description-'));
  const store = await openStore({ path: join(folder, 'est.db'), auditFile: join(folder, 'audit.log') });
  const app = createAdminApp(dependencies(store));
  try {
    await app.ready();
    return describeApi(app);
  } finally {
    await app.close();
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

/** `api/admin.d.ts`. */
export async function adminTypes(): Promise<string> {
  const text = JSON.stringify(await adminDescription());
  const header = '/** The admin API as types, made of its OpenAPI description: `npm run types:api`. */\n\n';
  return header + astToString(await openapiTypes(text));
}

function dependencies(store: AdminDependencies['store']): AdminDependencies {
  const never = (): Promise<never> => Promise.reject(new Error('nobody calls'));
  return {
    store,
    lastReload: () => undefined,
    faults: () => [],
    clientCrls: () => [],
    services: () => [],
    reload: never,
    certificateExpiries: () => [],
    est: () => ({ port: 0, certificate: '' }),
    otp: { create: never, estimate: never },
    authenticator: { authenticate: never, hasOidc: false, beginOidc: never, completeOidc: never },
    sessions: {
      begin: never,
      resume: never,
      note: never,
      end: never,
      isAlive: () => false,
      times: { idle_timeout: 0, lifetime: 0 },
    },
    fleet: { list: never, summary: never, refresh: never },
    configuration: () => [],
    issuers: () => [],
    cas: {
      all: [],
      issuers: [],
      find: () => {
        throw new Error('nobody calls');
      },
    },
    notifiers: [],
    crls: { latest: never, signNow: never },
    dryRun: { run: never, queued: never },
    settings: {
      est: { retry_after: 30 },
      limits: {},
      server: { body_limit: 65_536, headers_timeout: 10, request_timeout: 30, keep_alive_timeout: 30 },
      otp: { enabled: true, max_uses: 1, default_ttl: 86_400 },
      admin: { public_metrics: false, console: false },
      publication: { enabled: false },
      tls: { client_auth: { mode: 'optional' } },
    },
    metrics: new Metrics(),
    version: VERSION,
    node: 'node-1',
    now: Date.now,
    log: createLogger('error', { write: () => undefined }),
  };
}
