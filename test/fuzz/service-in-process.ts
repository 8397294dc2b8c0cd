/** A whole Estuary in this process, on the loopback, so that its coverage is seen; with every operation on and cheap hashes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { loadConfig } from '../../src/config/load.ts';
import { startService } from '../../src/main/start.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { section, caSection } from '../support/estuary.ts';
import { call, type Answer } from '../support/https.ts';
import { freePorts } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';

export interface ServiceInProcess {
  /** POSTs base64 to an EST operation, with a one-time password that lasts. */
  readonly post: (path: string, type: string, der: Buffer) => Promise<Answer>;
  readonly stop: () => Promise<void>;
}

/** @param ra DER of a registration authority's certificate */
export async function startInProcess(ra: Buffer): Promise<ServiceInProcess> {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-fuzz-'));
  await makeQuickstart(dir);
  const file = join(dir, 'est.toml');
  const [est = 0, admin = 0] = await freePorts(2);
  const toml = parse(readFileSync(file, 'utf8'));
  configure(toml, { est, admin });
  writeFileSync(file, stringify(toml));
  writeFileSync(join(dir, 'ra.pem'), encodePem('CERTIFICATE', ra));
  writeFileSync(join(dir, 'hmac.key'), Buffer.alloc(32, 7), { mode: 0o600 });
  const loaded = await loadConfig(file, {});
  const service = await startService({ ...loaded, configFile: file });
  const tls = { ca: readFileSync(join(dir, 'ca/root.pem'), 'latin1') };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const bearer = `Bearer ${readFileSync(join(dir, 'admin/token'), 'latin1').trim()}`;
  const made = await call({
    port: admin,
    tls,
    method: 'POST',
    path: '/admin/otp',
    headers: { Authorization: bearer, 'Content-Type': 'application/json' },
    body: '{"client_id":"device-1","max_uses":1000000}',
  });
  const authorization = `Basic ${Buffer.from(`device:${tokenIn(made)}`).toString('base64')}`;
  return {
    post: (path, type, der) =>
      call({
        port: est,
        tls,
        agent,
        method: 'POST',
        path: `/.well-known/est/${path}`,
        headers: { 'Content-Type': type, Authorization: authorization },
        body: der.toString('base64'),
      }),
    stop: async () => {
      agent.destroy();
      await service.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** What costs much on purpose would hide what costs much by mistake: hashes of passwords, RSA keys. */
function configure(toml: TomlTable, ports: { readonly est: number; readonly admin: number }): void {
  Object.assign(section(toml, 'est'), {
    port: ports.est,
    serverkeygen: true,
    fullcmc: true,
    fullcmc_require_mtls: false,
  });
  Object.assign(section(toml, 'admin'), { port: ports.admin });
  Object.assign(section(toml, 'otp'), { hash_algorithm: 'sha256-hmac', hmac_key_file: 'hmac.key' });
  Object.assign(section(toml, 'cmc'), { ra_certificates: ['ra.pem'] });
  Object.assign(section(toml, 'log'), { level: 'error' });
  for (const at of [0, 1]) {
    const profile = section(caSection(toml, at), 'profile');
    Object.assign(profile, { key_types: ['ec:P-256', 'ed25519'], allow_subject_change: true });
  }
  Object.assign(caSection(toml, 1), { approval: 'manual' });
}

function tokenIn({ text }: Answer): string {
  const json: unknown = JSON.parse(text);
  if (typeof json === 'object' && json !== null && 'token' in json) return String(json.token);
  throw new Error(`no one-time password: ${text}`);
}
