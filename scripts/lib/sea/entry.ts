/** The single executable's program: `estuary client`, and nothing of the server. */
import { runCommand } from '../../../src/main/commands/run-command.ts';
import { group } from '../../../src/main/commands/command.ts';
import type { Signals } from '../../../src/main/signals.ts';

/** Put there by the bundler. */
declare const ESTUARY_VERSION: string;

const PROGRAM = {
  name: 'estuary',
  commands: [
    group(
      'client',
      'An EST client: get certificates, and keep them renewed.',
      async () => (await import('../../../src/main/commands/client/table.ts')).CLIENT_COMMANDS,
    ),
  ],
  version: () => Promise.resolve(`estuary ${ESTUARY_VERSION}, the client alone`),
};

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const signals: Signals = {
  pass(to) {
    for (const name of SIGNALS) process.on(name, () => to(name));
  },
  release: () => undefined,
};

void runCommand(PROGRAM, process.argv.slice(2), {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  now: Date.now,
  signals,
}).then((code) => (process.exitCode = code));
