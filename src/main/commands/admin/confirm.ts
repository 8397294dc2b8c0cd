/** Before what cannot be undone somebody says so: at the keyboard, or with `--yes`. */
import { CommandError, UsageError, type CommandContext } from '../command.ts';

/**
 * @param what is about to be done, as a question, and above it whatever helps to decide
 * @throws UsageError: there is nobody to ask, and no --yes; CommandError: the answer is no
 */
export async function confirm(
  { about = '', question, yes }: { readonly about?: string; readonly question: string; readonly yes: boolean },
  { terminal, err }: Pick<CommandContext, 'terminal' | 'err'>,
): Promise<void> {
  if (yes) return;
  if (terminal?.ask === undefined)
    throw new UsageError('this cannot be undone, and there is no terminal to ask: --yes says that it is meant');
  err(about);
  const answer = await terminal.ask(`${question} [y/N] `);
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('not confirmed: nothing was done');
}
