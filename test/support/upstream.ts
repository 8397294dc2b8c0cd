/** A server in front of another CA: a label `edge` with a remote driver, next to the quickstart's own CAs. */
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { X509Certificate } from 'node:crypto';
import { onTheWire, simpleCsr, type TestKey } from './csr.ts';
import { certificatePem, Estuary, itemsOf, type EstCall, type EstuaryOptions } from './estuary.ts';
import type { Answer } from './https.ts';

export interface FrontOptions {
  /** PEM file with the roots of the upstream CA. */
  readonly anchors: string;
  /** The rest of the `[[ca]]` table. */
  readonly ca: (dir: string) => TomlTable;
  readonly configure?: (config: TomlTable, dir: string) => void;
  readonly env?: Readonly<Record<string, string>>;
  readonly listeners?: EstuaryOptions['listeners'];
}

/** Starts it. Certificates of the upstream CA authenticate devices. */
export function startFront({ anchors, ca, configure, env, listeners }: FrontOptions): Promise<Estuary> {
  return Estuary.start({
    ...(env === undefined ? {} : { env }),
    ...(listeners === undefined ? {} : { listeners }),
    configure: (config, dir) => {
      copyFileSync(anchors, join(dir, 'upstream-roots.pem'));
      appendFileSync(join(dir, 'tls/client-anchors.pem'), readFileSync(anchors));
      const edge = { label: 'edge', upstream_trust_anchors: 'upstream-roots.pem', profile: {}, ...ca(dir) };
      const cas = config['ca'];
      if (!Array.isArray(cas)) throw new TypeError('no [[ca]]');
      config['ca'] = [...cas, edge];
      configure?.(config, dir);
    },
  });
}

/** The upstream CA is the label `devices` of Estuary at a port of localhost. @param token a password of `front` */
export const atEst =
  (port: number, token: string): FrontOptions['ca'] =>
  (dir) => {
    writeFileSync(join(dir, 'upstream.password'), token, { mode: 0o600 });
    const url = `https://localhost:${port}/.well-known/est/devices`;
    const credential = { username: 'front', password_file: 'upstream.password' };
    return { driver: 'est', est: { url, tls_trust_anchors: 'upstream-roots.pem', ...credential } };
  };

/** A device's request at the label, with a fresh one-time password unless a credential is given. */
export async function enrollAt(
  front: Estuary,
  key: TestKey,
  cn: string,
  {
    names = [`${cn}.example.com`],
    ...call
  }: Omit<EstCall, 'body'> & { readonly names?: readonly string[]; readonly path?: string } = {},
): Promise<Answer> {
  const credential =
    call.password === undefined && call.client === undefined
      ? { password: (await front.otp({ client_id: cn })).token }
      : {};
  return front.enroll(onTheWire(simpleCsr(key, cn, names)), { path: 'edge/simpleenroll', ...credential, ...call });
}

export const x509 = (answer: Answer): X509Certificate => new X509Certificate(certificatePem(answer));

/** The latest audit record of a type. */
export async function latestAudit(front: Estuary, type: string): Promise<Record<string, unknown> | undefined> {
  const { json } = await front.admin('GET', `/admin/audit?type=${type}&order=desc&limit=1`);
  return itemsOf(json)[0];
}
