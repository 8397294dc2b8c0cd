import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadConfig, loadConfigOnly, type LoadedConfig } from '../../src/config/load.ts';
import { checkFaults, ConfigError } from '../../src/config/problem.ts';
import { removeFolder } from '../support/folders.ts';

/** The parts of the smallest configuration that is accepted; tests replace one or add to it. */
export const PARTS = {
  tls: `
[tls]
certificate = "tls/server.pem"
private_key = "tls/server.key"`,
  clientAuth: `
[tls.client_auth]
trust_anchors = "ca/root.pem"`,
  admin: `
[admin.tls]
trust_anchors = "admin/ca.pem"
default_roles = ["admin"]`,
  ca: `
[[ca]]
label = "devices"
default = true
driver = "file"
certificate = "ca/issuing.pem"
chain = "ca/root.pem"
[ca.file]
private_key = "ca/issuing.key"`,
} as const;

/** The smallest configuration with some parts replaced, and more text after it. */
export function toml(more = '', parts: Partial<Record<keyof typeof PARTS, string>> = {}): string {
  const { tls, clientAuth, admin, ca } = { ...PARTS, ...parts };
  return [tls, clientAuth, admin, ca, more].join('\n');
}

/** With the files that the configuration names. */
interface LoadOptions {
  /** Milliseconds since the epoch. */
  readonly now?: number;
}

export interface ConfigFolder {
  readonly path: string;
  write(name: string, content: string | Uint8Array): Promise<void>;
  /** Writes est.toml and loads it; without the checks of files unless told. */
  load(text: string, env?: Record<string, string>, options?: LoadOptions): Promise<LoadedConfig>;
  /** The lines that an operator reads when it is refused, with the folder cut off; none when it is not. */
  problems(text: string, env?: Record<string, string>, options?: LoadOptions): Promise<string[]>;
  remove(): void;
}

export async function configFolder(): Promise<ConfigFolder> {
  const path = await mkdtemp(join(tmpdir(), 'estuary-config-'));
  const write = async (name: string, content: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  };
  const load: ConfigFolder['load'] = async (text, env = {}, options) => {
    await write('est.toml', text);
    const file = join(path, 'est.toml');
    if (options === undefined) return loadConfigOnly(file, env);
    const { config, warnings, faults } = await loadConfig(file, env, options.now);
    return { config, warnings: [...warnings, ...checkFaults(file, faults)] };
  };
  const problems: ConfigFolder['problems'] = async (text, env, options) => {
    try {
      await load(text, env, options);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.message.replaceAll(`${path}/`, '').split('\n');
    }
  };
  return { path, write, load, problems, remove: () => removeFolder(path) };
}
