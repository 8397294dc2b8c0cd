/** Runs one of the operator's programs: no shell, a clean environment, limited time and output. */
import { spawn } from 'node:child_process';

/** A program and its arguments. */
export type CommandLine = readonly [string, ...string[]];

/** A configured list of words as a command line; undefined if it is empty. */
export function commandLine([program, ...args]: readonly string[] = []): CommandLine | undefined {
  return program === undefined ? undefined : [program, ...args];
}

interface ProgramRun {
  readonly command: CommandLine;
  /** The whole environment, except PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  /** Milliseconds until it is killed. */
  readonly timeout: number;
  /** Bytes, for each of stdout and stderr. */
  readonly maxOutput: number;
}

export interface ProgramResult {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** The program did not start, was killed, or wrote too much. */
export class ProgramError extends Error {
  /** False: it certainly did not run. */
  readonly started: boolean;

  constructor(message: string, started: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProgramError';
    this.started = started;
  }
}

export function runProgram({ command, env, input, timeout, maxOutput }: ProgramRun): Promise<ProgramResult> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    let started = false;
    let problem: string | undefined;
    // A process group, so that its children are killed with it.
    const child = spawn(program, args, {
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...env },
      stdio: 'pipe',
      detached: true,
    });
    const kill = (reason: string): void => {
      problem ??= reason;
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    };
    const timer = setTimeout(() => kill(`${program} did not end within ${timeout / 1000} s`), timeout);
    const collect = (stream: NodeJS.ReadableStream): Buffer[] => {
      const chunks: Buffer[] = [];
      let size = 0;
      stream.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxOutput) kill(`${program} wrote more than ${maxOutput} bytes`);
        else chunks.push(chunk);
      });
      return chunks;
    };
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    child.on('spawn', () => {
      started = true;
    });
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(new ProgramError(`${program} could not be run: ${error.message}`, started, error));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (problem === undefined && code !== null)
        resolve({ code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) });
      else reject(new ProgramError(problem ?? `${program} was ended by ${signal ?? 'a signal'}`, true));
    });
    // A program that does not read its input closes the pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
