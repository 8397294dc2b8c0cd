/** `estuary client` as a separate process, and the files in its folder. */
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify, type TomlTable } from 'smol-toml';
import { parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { runAny, type CommandResult } from './command.ts';
import { NODE, SERVER } from './server-process.ts';

/** Runs `estuary client …` to its end. */
export function estuaryClient(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return runAny(NODE, [SERVER, 'client', ...args], { env });
}

export interface ClientFolder {
  readonly path: string;
  readonly config: string;
}

/** Writes a client.toml of one certificate; `live` and the rest come to `<dir>/<name>`. */
export function clientFolder(
  dir: string,
  name: string,
  server: TomlTable,
  certificate: TomlTable,
  more: TomlTable = {},
): ClientFolder {
  const path = join(dir, name);
  mkdirSync(path, { recursive: true });
  const config = join(path, 'client.toml');
  writeFileSync(config, stringify({ ...more, server, certificate: [{ folder: path, ...certificate }] }));
  return { path, config };
}

/** The certificate in use. */
export function liveCertificate(folder: string): Certificate {
  const [certificate] = parsePemCertificates(readFileSync(join(folder, 'live/fullchain.pem'), 'latin1'));
  if (certificate === undefined) throw new Error(`no certificate in ${folder}`);
  return certificate;
}

export const liveVersion = (folder: string): number =>
  Number(readlinkSync(join(folder, 'live')).replace('versions/', ''));
