/** `backup`: a copy of the store of a running server. */
import { join, resolve } from 'node:path';
import { loadConfigOnly } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { backUp, bytesOf, DATABASE, type Manifest, requireFile } from '../backup/backup.ts';
import { EXIT, type CommandContext } from './command.ts';
import { showGrowth } from './growth.ts';

interface BackupValues {
  readonly config: string;
  readonly to: string;
}

/** @throws ConfigError; EstuaryError where there is no store, or the folder holds something */
export async function run({ config: file, to }: BackupValues, context: CommandContext): Promise<number> {
  const { config } = await loadConfigOnly(file, context.env);
  requireFile(config.store.driver);
  const folder = resolve(to);
  const { audit, files } = await copy(config, folder, context);
  for (const [name, { bytes }] of Object.entries(files)) context.out(`${folder}/${name}: ${bytes} bytes\n`);
  context.out(`the backup is whole, up to audit record ${audit.seq}\n`);
  context.out('not in it, to be kept by other means:\n');
  for (const what of notInIt(file, config)) context.out(`  ${what}\n`);
  return EXIT.ok;
}

async function copy(config: Config, folder: string, context: CommandContext): Promise<Manifest> {
  const { store, otp } = config;
  const total = bytesOf(store.path);
  const end = showGrowth({ file: join(folder, DATABASE), total, what: 'copying' }, context);
  try {
    return backUp({
      storePath: store.path,
      ownLookupKey: otp.lookup_key === undefined,
      to: folder,
      now: () => context.now(),
      progress: (text) => context.out(`${text}\n`),
    });
  } finally {
    await end();
  }
}

/** What a store cannot go without on another machine. */
function notInIt(file: string, { audit, otp, ca }: Config): string[] {
  return [
    `the audit file ${audit.file}, which tells of everything after the backup: send it to another machine as it is written`,
    `the configuration ${file}, and the certificates, keys and secrets that it names`,
    ...(otp.lookup_key === undefined ? [] : ["the key of the tokens' lookups (otp.lookup_key_file)"]),
    ...ca.map((one) => {
      if (one.driver === 'file') return `the key of CA ${one.label}, ${one.file.private_key}`;
      return one.driver === 'pkcs11' ? `the key of CA ${one.label}, in its token` : `CA ${one.label}, in Dogtag`;
    }),
  ];
}
