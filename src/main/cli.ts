/** The program: hands the command line to the table of commands. Loads nothing else, so that `--help` and `--version` cost next to nothing. */
import { runCommand } from './commands/run-command.ts';
import { COMMANDS } from './commands/table.ts';
import type { Signals } from './signals.ts';
import { drained, terminalOf } from './terminal.ts';

const NOTES = `estuary --config FILE [--check] is "estuary serve", estuary --version tells the version.

exit codes: 0 stopped cleanly or nothing found, 1 could not start, died or found a broken audit log,
            2 configuration refused
signals:    SIGTERM, SIGINT stop; SIGHUP reads certificates, keys, trust anchors, CRLs and tokens again`;

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
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    now: Date.now,
    signals,
    terminal: terminalOf(process),
    drained: () => drained(process.stdout),
  });
}
