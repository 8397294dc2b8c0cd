/** The servers of `examples/`: the quickstart's files under the names that the examples use, and an example's est.toml as it stands. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { runAny } from '../support/command.ts';
import { certificatesOf, Estuary, section } from '../support/estuary.ts';
import { call, type Answer } from '../support/https.ts';
import { ROOT } from '../support/root.ts';
import { NODE, SERVER } from '../support/server-process.ts';

export interface Example {
  readonly estuary: Estuary;
  /** What `--check` says of the example as it is, without the folder. */
  check(): Promise<string>;
  /** A POST to the admin API with the administrator's certificate. */
  admin(path: string, body: string, type?: string): Promise<Answer>;
}

export interface ExampleOptions {
  /** What is another thing in a test than in the example: a realm, a port. */
  readonly edit?: (toml: string) => string;
  /** Writes the files that only this example names. */
  readonly prepare?: (dir: string) => void;
  readonly env?: Readonly<Record<string, string>>;
}

export const exampleFile = (name: string, file: string): string => join(ROOT, 'examples', name, file);

export async function startExample(name: string, options: ExampleOptions = {}): Promise<Example> {
  const { edit = (text: string): string => text, prepare, env = {} } = options;
  const toml: string = edit(readFileSync(exampleFile(name, 'est.toml'), 'utf8'));
  const estuary = await Estuary.start({
    env,
    configure: (config, dir) => {
      prepare?.(dir);
      writeFileSync(join(dir, 'example.toml'), toml);
      for (const key of Object.keys(config)) Reflect.deleteProperty(config, key);
      Object.assign(config, parse(toml));
      for (const listener of ['est', 'admin']) section(config, listener)['port'] = 0;
    },
  });
  const { dir } = estuary;
  const pem = (file: string): string => readFileSync(join(dir, 'admin', file), 'latin1');
  return {
    estuary,
    check: async () => {
      const { output } = await runAny(NODE, [SERVER, '--check', '--config', join(dir, 'example.toml')], { env });
      return output.replaceAll(`${dir}/`, '');
    },
    admin: (path, body, type = 'application/json') =>
      call({
        port: estuary.server.port('admin'),
        path,
        method: 'POST',
        tls: { ca: estuary.root, cert: pem('client.pem'), key: pem('client.key') },
        headers: { 'Content-Type': type },
        body,
      }),
  };
}

/** The subject of the one certificate in an answer, and its subjectAltNames. */
export function issuedNames(answer: Answer): string[] {
  const [der, ...more] = certificatesOf(answer);
  if (der === undefined || more.length > 0) throw new Error('not exactly one certificate');
  const { subject, subjectAltNames } = parseCertificate(der);
  return [formatName(subject), ...subjectAltNames.map(formatGeneralName)];
}
