/** `audit verify`: whether nothing of the audit log was changed or taken out. */
import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CheckpointKey, keptCheckpoints } from '../../audit/checkpoint.ts';
import type { Checkpoint } from '../../audit/event.ts';
import type { AuditVerdict } from '../../audit/chain-check.ts';
import { verifyAudit } from '../../store/sqlite/read-audit.ts';
import { loadConfigOnly } from '../../config/load.ts';
import { describe } from '../../errors.ts';
import { EXIT, UsageError, type CommandContext } from './command.ts';
import { progress } from './progress.ts';
import { nodesOf } from './nodes-of.ts';
import { verifyNodes } from '../../store/postgres/read-audit.ts';

/** As the table of commands has them. */
export interface AuditVerifyOptions {
  readonly config: string;
  readonly checkpoint: string | undefined;
  readonly 'checkpoint-key': string | undefined;
}

/** @throws ConfigError; UsageError on a file that an option names */
export async function run(options: AuditVerifyOptions, context: CommandContext): Promise<number> {
  // The audit log has to be verifiable on a machine that holds none of the keys.
  const { config } = await loadConfigOnly(options.config, context.env);
  const { store, audit } = config;
  const shown = progress(context, { what: 'verifying', unit: 'records' });
  const wanted = {
    auditFile: audit.file,
    key: await readKey(options['checkpoint-key'], audit.checkpoint_key),
    kept: options.checkpoint === undefined ? undefined : await readKept(options.checkpoint),
    progress: shown.update,
  };
  const verify =
    store.driver === 'sqlite'
      ? verifyAudit({ ...wanted, storePath: store.path })
      : verifyNodes({ ...wanted, ...(await nodesOf(config, options.config, context)) });
  const verdict = await verify.finally(shown.end);
  if (verdict.ok) {
    const nodes = verdict.nodes === undefined ? '' : ` of ${verdict.nodes} nodes`;
    context.out(`the audit log is whole: ${verdict.records} records${nodes}${more(verdict)}\n`);
    return EXIT.ok;
  }
  const place = verdict.seq === null ? 'the audit log' : `audit record ${verdict.seq}`;
  context.err(`${place} is broken: ${verdict.problem}\n`);
  return EXIT.failed;
}

function more({ archived, checkpoints, kept }: Extract<AuditVerdict, { ok: true }>): string {
  return [
    ...(archived === undefined ? [] : [`, and ${archived} before them are archived`]),
    ...(checkpoints === undefined ? [] : [`; ${checkpoints} signed checkpoints`]),
    ...(kept === undefined ? [] : [`; it agrees with ${kept} that were kept`]),
  ].join('');
}

/** The one that the option names has to be there; that of the configuration may be on the server alone. */
async function readKey(wanted: string | undefined, configured: string | undefined): Promise<CheckpointKey | undefined> {
  const file = wanted ?? configured;
  if (file === undefined) return undefined;
  try {
    return new CheckpointKey(createPublicKey(await readFile(file)).export({ format: 'der', type: 'spki' }));
  } catch (error) {
    if (wanted === undefined && isOutOfReach(error)) return undefined;
    throw new UsageError(`--checkpoint-key: ${file}: ${describe(error)}`);
  }
}

const isOutOfReach = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES');

async function readKept(file: string): Promise<Checkpoint[]> {
  try {
    return keptCheckpoints(await readFile(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--checkpoint: ${file}: ${describe(error)}`);
  }
}
