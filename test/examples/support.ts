/** The servers of `examples/`: the quickstart's files under the names that the examples use, and an example's est.toml as it stands. */
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { runAny } from '../support/command.ts';
import { Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { ROOT } from '../support/root.ts';
import { NODE, SERVER } from '../support/server-process.ts';

export interface Example {
  readonly estuary: Estuary;
  /** What `--check` says of the example as it stands, with the folder cut off. */
  readonly checked: string;
  /** A call of the admin API with the administrator's certificate. */
  admin(method: string, path: string, body?: unknown): Promise<{ status: number; json: Record<string, unknown> }>;
}

export const exampleFile = (name: string, file: string): string => join(ROOT, 'examples', name, file);

/** @param prepare writes the files that only this example names */
export async function startExample(
  name: string,
  prepare: (dir: string) => void = () => undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<Example> {
  const toml = exampleFile(name, 'est.toml');
  const estuary = await Estuary.start({
    env,
    configure: (config, dir) => {
      prepare(dir);
      copyFileSync(toml, join(dir, 'example.toml'));
      for (const key of Object.keys(config)) Reflect.deleteProperty(config, key);
      Object.assign(config, parse(readFileSync(toml, 'utf8')));
      for (const listener of ['est', 'admin']) section(config, listener)['port'] = 0;
    },
  });
  const { dir } = estuary;
  const { output } = await runAny(NODE, [SERVER, '--check', '--config', join(dir, 'example.toml')], { env });
  return {
    estuary,
    checked: output.replaceAll(`${dir}/`, ''),
    async admin(method, path, body) {
      const read = (file: string): string => readFileSync(join(dir, 'admin', file), 'latin1');
      const answer = await call({
        port: estuary.server.port('admin'),
        path,
        method,
        tls: { ca: estuary.root, cert: read('client.pem'), key: read('client.key') },
        headers: { 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
      });
      const json: unknown = JSON.parse(answer.text === '' ? '{}' : answer.text);
      return { status: answer.status, json: typeof json === 'object' ? { ...json } : {} };
    },
  };
}
