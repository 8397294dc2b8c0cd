/** Runs a hook in a process group, and logs its output. */
import { ClientError } from './client-error.ts';
import { SYSTEM } from './system.ts';

/**
 * Runs a command line.
 * @param line takes each line of its output
 * @param timeout milliseconds
 * @throws ClientError `HOOK_FAILED`
 */
export type RunHook = (
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
  timeout: number,
  line: (text: string) => void,
) => Promise<void>;

/** The longest line, and the most lines of a hook, that are logged. */
const [LINE, LINES] = [300, 100];
/** Milliseconds that a background process of a finished hook may keep its output open. */
const OUTPUT_GRACE = 500;

export const runHook: RunHook = (command, environment, timeout, line) =>
  new Promise((resolve, reject) => {
    const child = SYSTEM.startShell(command, environment);
    let last = '';
    let count = 0;
    const say = (text: string): void => {
      const printable = text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').trim();
      if (printable === '') return;
      last = printable.slice(0, LINE);
      if (++count <= LINES) line(last);
    };
    const streams = [child.stdout, child.stderr].map((stream) => {
      let rest = '';
      stream?.on('data', (chunk: Buffer) => {
        const lines = (rest + chunk.toString('utf8')).split('\n');
        rest = (lines.pop() ?? '').slice(0, LINE);
        for (const line of lines) say(line);
      });
      return (): void => {
        stream?.destroy();
        say(rest);
      };
    });
    let isTimeout = false;
    const timer = setTimeout(() => {
      isTimeout = true;
      SYSTEM.killAll(child);
    }, timeout);
    let grace: NodeJS.Timeout | undefined;
    let isEnded = false;
    const end = (reason: string | undefined): void => {
      if (isEnded) return;
      isEnded = true;
      clearTimeout(timer);
      clearTimeout(grace);
      for (const finish of streams) finish();
      if (count > LINES) line(`… and ${count - LINES} more lines`);
      if (reason === undefined) {
        resolve();
        return;
      }
      const text = `"${command}" ${reason}${last === '' ? '' : `: ${last}`}`;
      reject(new ClientError('local', 'HOOK_FAILED', text));
    };
    child.once('error', (error) => end(`cannot be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      const reason = isTimeout
        ? `took longer than ${timeout / 1000} s and was killed`
        : signal === null
          ? `exited with ${code ?? 'no code'}`
          : `was killed by ${signal}`;
      const finish = (): void => end(code === 0 && !isTimeout ? undefined : reason);
      grace = setTimeout(finish, OUTPUT_GRACE);
      child.once('close', finish);
    });
  });
