/** Entry point: runs the command of the command line. Loads little, so that `--help` and `--version` are fast. */
import { codeOf, describe } from '../errors.ts';
import { EXIT, type Terminal } from './commands/command.ts';
import { runCommand } from './commands/run-command.ts';
import { COMMANDS, NOTES } from './commands/table.ts';
import type { Signals } from './signals.ts';

/** Default width. */
const COLUMNS = 80;

/** Opens no stream before a command asks: the server does not use them. */
export function terminalOf(streams: Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr'>): Terminal {
  const columns = (stream: NodeJS.WriteStream): number | undefined =>
    stream.isTTY ? stream.columns || COLUMNS : undefined;
  return {
    get outColumns() {
      return columns(streams.stdout);
    },
    get errColumns() {
      return columns(streams.stderr);
    },
    get ask() {
      const { stdin, stderr } = streams;
      return stdin.isTTY && stderr.isTTY ? (question: string) => ask(stdin, stderr, question) : undefined;
    },
  };
}

/** Asks on standard error, since the output may be redirected. An end of input counts as an empty line. */
async function ask(input: NodeJS.ReadStream, output: NodeJS.WriteStream, question: string): Promise<string> {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input, output });
  try {
    return await new Promise((resolve) => {
      lines.on('close', () => resolve(''));
      lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
      lines.question(question, resolve);
    });
  } finally {
    lines.close();
  }
}

/** Resolves once a stream has room again. */
export async function drained(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableNeedDrain) await new Promise((resolve) => stream.once('drain', resolve));
}

/** Writes to a stream, which it opens for the first text. */
function writer(
  stream: () => NodeJS.WriteStream,
  onError: (error: Error) => void,
): (text: string | Uint8Array) => void {
  let isGuarded = false;
  return (text) => {
    if (!isGuarded) stream().on('error', onError);
    isGuarded = true;
    stream().write(text);
  };
}

// What cannot be reported does not end a command.
const err = writer(
  () => process.stderr,
  () => undefined,
);

/** Ends the process, silently if the reader is gone (`| head`). */
const out = writer(
  () => process.stdout,
  (error) => {
    if (codeOf(error) === 'EPIPE') process.exit();
    err(`estuary: the output is incomplete: ${describe(error)}\n`);
    process.exit(EXIT.failed);
  },
);

const PROGRAM = {
  name: 'estuary',
  commands: COMMANDS,
  unnamed: 'serve',
  version: async () => `estuary ${(await import('../version.ts')).VERSION}`,
  notes: NOTES,
};

/** Runs the command and sets the exit code; returns once the server is up or the command is done. */
export async function main(args: readonly string[], signals: Signals): Promise<void> {
  process.exitCode = await runCommand(PROGRAM, args, {
    env: process.env,
    out,
    err,
    now: Date.now,
    signals,
    terminal: terminalOf(process),
    drained: () => drained(process.stdout),
  });
}
