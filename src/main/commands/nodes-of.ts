/** The nodes that share a PostgreSQL store, for a command that reads it. */
import { readStoreTls } from '../../config/material/load-material.ts';
import type { Config } from '../../config/schema.ts';
import type { PostgresServer } from '../../store/calls/database-options.ts';
import { nodeName } from '../nodes.ts';
import { postgresServer } from '../postgres-server.ts';
import type { CommandContext } from './command.ts';

/** Where their database is, and which of them is this one. @param file of the configuration @throws ConfigError */
export async function nodesOf(
  config: Config,
  file: string,
  context: CommandContext,
): Promise<{ readonly server: PostgresServer; readonly node: string }> {
  const storeTls = await readStoreTls(config, file, context.now());
  return { server: postgresServer(config, { storeTls }), node: nodeName(config) };
}
