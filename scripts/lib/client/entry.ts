/** The program of the package and the single executable: `estuary client`, and nothing of the server. */
import { CLIENT_COMMANDS } from '../../../src/main/commands/client/table.ts';
import { runCommand } from '../../../src/main/commands/run-command.ts';
import type { Signals } from '../../../src/main/signals.ts';

/** Put there by the bundler. */
declare const ESTUARY_VERSION: string;

const PROGRAM = {
  name: 'estuary-client',
  commands: CLIENT_COMMANDS,
  version: () => Promise.resolve(`estuary-client ${ESTUARY_VERSION}`),
};

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const signals: Signals = {
  pass(to) {
    for (const name of SIGNALS) process.on(name, () => to(name));
  },
  release: () => undefined,
};

// Node's default action opens a debugger, to which every local user may connect. Windows has no such signal.
if (process.platform !== 'win32') process.on('SIGUSR1', () => undefined);

// `estuary client renew` is `estuary-client renew`; both forms work.
const [first, ...others] = process.argv.slice(2);
const args = [...(first === undefined || first === 'client' ? [] : [first]), ...others];

void runCommand(PROGRAM, args, {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  now: Date.now,
  signals,
}).then((code) => (process.exitCode = code));
