/** The program: hands the command line to the table of commands. Loads nothing else, so that `--help` and `--version` cost next to nothing. */
import { runCommand } from './commands/run-command.ts';
import { COMMANDS, NOTES } from './commands/table.ts';
import type { Signals } from './signals.ts';
import { drained, terminalOf, writer } from './terminal.ts';

const PROGRAM = {
  name: 'estuary',
  commands: COMMANDS,
  unnamed: 'serve',
  version: async () => `estuary ${(await import('../version.ts')).VERSION}`,
  notes: NOTES,
};

/** Runs the command. Sets the exit code; returns once the server is up, or the command is done. */
export async function main(args: readonly string[], signals: Signals): Promise<void> {
  process.exitCode = await runCommand(PROGRAM, args, {
    env: process.env,
    out: writer(() => process.stdout),
    err: (text) => void process.stderr.write(text),
    now: Date.now,
    signals,
    terminal: terminalOf(process),
    drained: () => drained(process.stdout),
  });
}
