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

/** A path such as `/admin/otp/{id}` with the command's argument. */
function pathOf(template: string, options: Options, values: Readonly<Record<string, unknown>>): string {
  const [argument = ''] = Object.keys(options).filter((name) => options[name]?.kind === 'argument');
  return template.replace(/\{\w+\}/, () => encodeURIComponent(String(values[argument])));
}

interface RecordDefinition<O extends Options> {
  readonly call: string;
  readonly roles: readonly string[];
  readonly options: O;
  readonly about?: string;
  /** Its fields, instead of a query. @throws UsageError */
  readonly body?: (values: Values<NoInfer<O>>, now: number) => JsonRecord | Promise<JsonRecord>;
  /** Default: all options, if there is no body. @param shown what the call `confirms.of` returned */
  readonly query?: (values: Values<NoInfer<O>>, now: number, shown?: JsonRecord) => Query;
  /** Asks first, and describes the record that the call `of` returns. */
  readonly confirms?: {
    readonly of: string;
    readonly about: (record: JsonRecord, values: Values<NoInfer<O>>) => string;
    readonly question: string;
  };
  /** What is printed instead of the record; undefined: the record. */
  readonly done?: (values: Values<NoInfer<O>>, record: JsonRecord) => string | undefined;
  /** The exit code for a record; default 0. */
  readonly exitCode?: (record: JsonRecord) => number;
}

/** A command that makes one call and prints the record in its response. */
export function recordCommand<const O extends Options>(
  name: string,
  summary: string,
  { call, roles, options, about, body, query, confirms, done, exitCode = () => EXIT.ok }: RecordDefinition<O>,
): Command {
  const [method = '', template = ''] = call.split(' ');
  const run = async (values: Values<O>, session: Session): Promise<number> => {
    const { json, csv, yes, ...given }: Readonly<Record<string, unknown>> = values;
    const format = { json: json === true, csv: csv === true };
    formatOf(format);
    const now = session.now();
    const queryWith = (shown?: JsonRecord): Query =>
      query?.(values, now, shown) ?? (body === undefined ? queryOf(options, given, now) : {});
    const sent = { query: queryWith(), ...(body && { body: await body(values, now) }) };
    if (confirms !== undefined) {
      const path = pathOf(confirms.of.replace('GET ', ''), options, given);
      const shown = await session.client.record('GET', path, { query: sent.query });
      await confirm({ about: confirms.about(shown, values), question: confirms.question, yes: yes === true }, session);
      sent.query = queryWith(shown);
    }
    const record = await session.client.record(method, pathOf(template, options, given), sent);
    const text = done?.(values, record);
    if (text === undefined) printRecord(record, format, session);
    else session.out(`${text}\n`);
    return exitCode(record);
  };
  return adminCommand<O>(name, summary, {
    options: { ...options, ...(confirms && YES), ...(done === undefined && FORMATS) },
    run,
    calls: [call, ...(confirms === undefined ? [] : [confirms.of])],
    roles,
    ...(about === undefined ? {} : { about }),
  });
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
