/** Log lines on standard error, in a form for journald and people. */
import type { ClientContext } from '../../../client/context.ts';
import type { CommandContext } from '../command.ts';

export const logger =
  (context: Pick<CommandContext, 'err'>): ClientContext['log'] =>
  (level, certificate, message) =>
    context.err(`${level === 'info' ? '' : `${level}: `}${certificate}: ${message}\n`);
