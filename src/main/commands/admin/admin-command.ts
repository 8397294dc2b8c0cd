/** A command that calls the admin API: its options beside those of the connection, the calls that it makes, and whose role they need. */
import {
  command,
  type Command,
  type CommandContext,
  CommandError,
  EXIT,
  flag,
  type Options,
  type Run,
  UsageError,
  type Values,
} from '../command.ts';
import { AdminClient, type Method, type Query } from './client.ts';
import { CONNECTION, readConnection } from './connection.ts';
import type { JsonRecord } from './json.ts';
import { type FormatValues, printRecord } from './output.ts';

/** For whoever reads it: tables unless told. */
export const FORMATS = {
  json: flag('as JSON, for programs'),
  csv: flag('as CSV with a header line (RFC 4180), for programs and spreadsheets'),
};

/** Before what cannot be undone. */
export const YES = { yes: flag('do not ask; without a terminal it has to be given') };

interface Extras {
  /** As the API's description has them: `GET /admin/otp/{id}`. */
  readonly calls: readonly string[];
  /** One of which the calls need (`x-roles`); none: whoever is known may make them. */
  readonly roles: readonly string[];
  readonly about?: string;
}

/** What a command of the admin API is run with. */
export interface Session extends CommandContext {
  readonly client: AdminClient;
}

/** @param run resolves with the exit code. Throws UsageError; CommandError */
export function adminCommand<const O extends Options>(
  name: string,
  summary: string,
  options: O,
  run: (values: Values<NoInfer<O>>, session: Session) => Promise<number>,
  { calls, roles, about }: Extras,
): Command {
  const rights = roles.length === 0 ? [] : [`Needs the role ${roles.join(' or ')}.`];
  const connected: Run<Values<O & typeof CONNECTION>> = async (values, context) => {
    const client = new AdminClient(await readConnection(values, context), roles);
    try {
      return await run(values, { ...context, client });
    } finally {
      client.close();
    }
  };
  return command<O & typeof CONNECTION>(
    name,
    summary,
    { ...options, ...CONNECTION },
    () => Promise.resolve(connected),
    { about: [...(about === undefined ? [] : [about]), ...rights].join(' '), misuse: EXIT.refused, calls, roles },
  );
}

interface RecordCall {
  readonly method?: Method;
  readonly path: string;
  readonly query?: Query;
  readonly body?: JsonRecord;
}

/** A command whose call answers with a record, which it prints. @param callOf may throw UsageError */
export function records<V extends FormatValues>(callOf: (values: V, now: number) => RecordCall) {
  return async (values: V, session: Session): Promise<number> => {
    const { method = 'GET', path, ...call } = callOf(values, session.now());
    printRecord(await session.client.record(method, path, call), values, session);
    return EXIT.ok;
  };
}

/**
 * @param what is about to be done, as a question, and above it whatever helps to decide
 * @throws UsageError: there is no terminal, and no --yes; CommandError: the answer is no
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
