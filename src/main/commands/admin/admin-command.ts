/** Defines commands that call the admin API: their options, their calls and the required roles. */
import {
  type Command,
  command,
  type CommandContext,
  CommandError,
  EXIT,
  flag,
  type Options,
  type Run,
  UsageError,
  type Values,
} from '../command.ts';
import { AdminClient, type Query } from './client.ts';
import { CONNECTION, readConnection } from './connection.ts';
import type { JsonRecord } from './json.ts';
import { formatOf, printRecord } from './output.ts';
import { readTime } from './times.ts';

/** Output format; tables by default. */
export const FORMATS = { json: flag('print JSON, for programs'), csv: flag('print CSV with a header line (RFC 4180)') };

/** For irreversible actions. */
export const YES = { yes: flag('do not ask for confirmation; required without a terminal') };

interface Definition<O extends Options> {
  readonly options: O;
  /** Resolves with the exit code. @throws UsageError; CommandError */
  readonly run: (values: Values<NoInfer<O>>, session: Session) => Promise<number>;
  /** As in the API description: `GET /admin/otp/{id}`. */
  readonly calls: readonly string[];
  /** Any one suffices (`x-roles`); empty: any authenticated caller. */
  readonly roles: readonly string[];
  readonly about?: string;
}

export interface Session extends CommandContext {
  readonly client: AdminClient;
}

export function adminCommand<const O extends Options>(
  name: string,
  summary: string,
  { options, run, calls, roles, about }: Definition<O>,
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
  return command<O & typeof CONNECTION>(name, summary, {
    options: { ...options, ...CONNECTION },
    load: () => Promise.resolve(connected),
    about: [...(about === undefined ? [] : [about]), ...rights].join(' '),
    misuse: EXIT.refused,
    calls,
    roles,
  });
}

/** The parameters of a call, from the options of the same names; without arguments, and without options not given. */
export function queryOf(options: Options, values: Readonly<Record<string, unknown>>, now: number): Query {
  const query: Record<string, string> = {};
  for (const [name, option] of Object.entries(options)) {
    const given = values[name];
    const text = given === true ? 'true' : given;
    if (option.kind === 'argument' || typeof text !== 'string' || text === '') continue;
    const towards = option.kind === 'value' ? option.towards : undefined;
    query[name === 'ca-label' ? 'ca' : name.replaceAll('-', '_')] =
      towards === undefined ? text : readTime(`--${name}`, text, now, towards);
  }
  return query;
}

/** Fills the arguments into a path such as `/admin/otp/{id}`. */
const pathOf = (template: string, values: Readonly<Record<string, unknown>>): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])));

interface RecordDefinition<O extends Options> {
  readonly call: string;
  readonly roles: readonly string[];
  readonly options: O;
  /** Its fields, instead of a query. @throws UsageError */
  readonly body?: (values: Values<NoInfer<O>>, now: number) => JsonRecord | Promise<JsonRecord>;
  /** The options that are the query; default: all, if there is no body. */
  readonly query?: Options;
}

/** A command that makes one call and prints the record in its response. Arguments fill the path. */
export function recordCommand<const O extends Options>(
  name: string,
  summary: string,
  { call, roles, options, body, query = body === undefined ? options : {} }: RecordDefinition<O>,
): Command {
  const [method = '', template = ''] = call.split(' ');
  const run = async (values: Values<O & typeof FORMATS>, session: Session): Promise<number> => {
    const format: Values<typeof FORMATS> = values;
    formatOf(format);
    const path = pathOf(template, values);
    const now = session.now();
    const sent = { query: queryOf(query, values, now), ...(body && { body: await body(values, now) }) };
    printRecord(await session.client.record(method, path, sent), format, session);
    return EXIT.ok;
  };
  const all = { ...options, ...FORMATS };
  return adminCommand<O & typeof FORMATS>(name, summary, { options: all, run, calls: [call], roles });
}

/**
 * @param about text above the question
 * @throws UsageError without a terminal and --yes; CommandError if the answer is no
 */
export async function confirm(
  { about = '', question, yes }: { readonly about?: string; readonly question: string; readonly yes: boolean },
  { terminal, err }: Pick<CommandContext, 'terminal' | 'err'>,
): Promise<void> {
  if (yes) return;
  if (terminal?.ask === undefined)
    throw new UsageError('this cannot be undone. Pass --yes to confirm, because there is no terminal to ask');
  err(about);
  const answer = await terminal.ask(`${question} [y/N] `);
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('not confirmed: nothing was changed');
}
