/** The connection of one command, from its options to its end. */
import type { CommandContext, Values } from '../command.ts';
import { AdminClient } from './client.ts';
import { readConnection, type CONNECTION } from './connection.ts';

/** What a command of the admin API is run with. */
export interface Session extends CommandContext {
  readonly client: AdminClient;
}

/** @throws UsageError; CommandError */
export async function withSession<T>(
  options: Values<typeof CONNECTION>,
  context: CommandContext,
  roles: readonly string[],
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const client = new AdminClient(await readConnection(options, context), roles);
  try {
    return await work({ ...context, client });
  } finally {
    client.close();
  }
}
