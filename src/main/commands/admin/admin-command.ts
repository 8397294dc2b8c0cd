/** A command that calls the admin API: its options beside those of the connection, the calls that it makes, and whose role they need. */
import { command, EXIT, flag, type Command, type Options, type Values } from '../command.ts';
import { CONNECTION } from './connection.ts';
import type { Session } from './session.ts';

export interface AdminModule<O extends Options> {
  /** @returns the exit code. @throws UsageError; CommandError */
  readonly run: (values: Values<O>, session: Session) => Promise<number>;
}

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

/** @param load its file, which is not loaded before it is run */
export function adminCommand<const O extends Options>(
  name: string,
  summary: string,
  options: O,
  load: () => Promise<AdminModule<NoInfer<O>>>,
  { calls, roles, about }: Extras,
): Command {
  const rights = roles.length === 0 ? [] : [`Needs the role ${roles.join(' or ')}.`];
  return command<O & typeof CONNECTION>(
    name,
    summary,
    { ...options, ...CONNECTION },
    async () => {
      const [{ run }, { withSession }] = await Promise.all([load(), import('./session.ts')]);
      return { run: (values, context) => withSession(values, context, roles, (session) => run(values, session)) };
    },
    { about: [...(about === undefined ? [] : [about]), ...rights].join(' '), misuse: EXIT.refused, calls, roles },
  );
}
