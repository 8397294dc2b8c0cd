/** A child that misbehaves like a broken library. */
import { mkdirSync } from 'node:fs';
import { IsolatedError } from '../../src/process/protocol.ts';
import { serve } from '../../src/process/serve.ts';
import { pause } from '../support/until.ts';

let greeting = '';

serve({
  init(payload) {
    if (payload === 'crash') process.exit(3);
    if (payload === 'hang') return new Promise(() => undefined);
    if (payload === 'refuse') throw new IsolatedError('NO_KEY', 'the key is missing');
    if (typeof payload === 'string' && payload.startsWith('once:')) firstTimeOnly(payload.slice(5));
    greeting = String(payload);
    return undefined;
  },
  methods: {
    greet: (name) => `${greeting} ${String(name)}`,
    bytes: (bytes) => bytes,
    environment: () => ({
      names: Object.keys(process.env).sort(),
      argv: process.argv.slice(2),
      execArgv: process.execArgv,
    }),
    later: (ms) => pause(Number(ms)).then(() => ms),
    refuse: () => {
      throw new IsolatedError('TOO_HOT', 'try a cooler one');
    },
    // A native call that never returns, as far as the event loop can tell.
    hang: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
    crash: () => process.abort(),
    complain: () => {
      process.stderr.write('the library says ouch\n');
      setTimeout(() => process.exit(9), 20);
      return new Promise(() => undefined);
    },
    garbage: () => {
      process.send?.({ id: 'not a number' });
      return new Promise(() => undefined);
    },
    pid: () => process.pid,
  },
});

function firstTimeOnly(directory: string): void {
  // mkdir is the shortest "have I been here before" that survives the process.
  try {
    mkdirSync(directory);
  } catch {
    throw new IsolatedError('PIN_WRONG', 'the PIN is wrong', { permanent: true });
  }
}
