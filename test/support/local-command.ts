/** `estuary …` in this process, with what it prints, and a terminal where a test wants one. */
import { runCommand } from '../../src/main/commands/run-command.ts';
import { COMMANDS } from '../../src/main/commands/table.ts';
import type { CommandContext, Terminal } from '../../src/main/commands/command.ts';
import { textOf } from './command.ts';

export interface Done {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Around {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly terminal?: Partial<Terminal>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** Runs a command to its end. */
export async function estuary(
  args: readonly string[],
  { env = {}, terminal, now = Date.now }: Around = {},
): Promise<Done> {
  let [out, err] = ['', ''];
  const context: CommandContext = {
    env: { HOME: '/nonexistent', ...env },
    out: (text) => void (out += textOf(text)),
    err: (text) => void (err += text),
    now,
    signals: { pass: () => undefined, release: () => undefined },
    ...(terminal === undefined
      ? {}
      : { terminal: { outColumns: undefined, errColumns: undefined, ask: undefined, ...terminal } }),
  };
  const code = await runCommand({ name: 'estuary', commands: COMMANDS }, args, context);
  return { code, out, err };
}
