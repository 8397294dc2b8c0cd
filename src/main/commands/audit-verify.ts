/** `audit verify`: whether nothing of the audit log was changed or taken out. */
import { verifyAudit } from '../../audit/verify.ts';
import { loadConfigOnly } from '../../config/load.ts';
import { EXIT, type CommandContext } from './command.ts';

/** @throws ConfigError */
export async function run({ config: file }: { readonly config: string }, context: CommandContext): Promise<number> {
  // The audit log has to be verifiable on a machine that holds none of the keys.
  const { config } = await loadConfigOnly(file, context.env);
  const verdict = await verifyAudit({ storePath: config.store.path, auditFile: config.audit.file });
  if (verdict.ok) {
    const archived = verdict.archived === undefined ? '' : `, and ${verdict.archived} before them are archived`;
    context.out(`the audit log is whole: ${verdict.records} records${archived}\n`);
    return EXIT.ok;
  }
  const place = verdict.seq === null ? 'the audit log' : `audit record ${verdict.seq}`;
  context.err(`${place} is broken: ${verdict.problem}\n`);
  return EXIT.failed;
}
