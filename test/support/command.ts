/** Other programs in tests: limited in time, never through a shell. */
import { spawn } from 'node:child_process';

export interface CommandOptions {
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds; one minute unless told. */
  readonly timeout?: number;
}

export interface CommandResult {
  /** -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: Buffer;
  /** stdout and stderr as they came, for messages. */
  readonly output: string;
}

/** Runs a command to its end, whatever its exit code. */
export function runAny(command: string, args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      timeout: options.timeout ?? 60_000,
      killSignal: 'SIGKILL',
    });
    const stdout: Buffer[] = [];
    const both: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => {
      stdout.push(chunk);
      both.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => both.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code: code ?? -1, stdout: Buffer.concat(stdout), output: Buffer.concat(both).toString('utf8') });
    });
    // A command that does not read its input to the end is no failure of the test.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input);
  });
}

/**
 * Runs a command that has to succeed.
 *
 * @returns its stdout
 * @throws {Error} with everything it wrote, when its exit code is not 0.
 */
export async function run(command: string, args: readonly string[], options: CommandOptions = {}): Promise<Buffer> {
  const result = await runAny(command, args, options);
  if (result.code === 0) return result.stdout;
  throw new Error(`${command} ${args.join(' ')}: exit code ${result.code}\n${result.output}`);
}

/** The same, as text. */
export async function runText(command: string, args: readonly string[], options?: CommandOptions): Promise<string> {
  return (await run(command, args, options)).toString('utf8');
}

/** What a command writes, as text. */
export const textOf = (written: string | Uint8Array): string =>
  typeof written === 'string' ? written : Buffer.from(written).toString('utf8');
