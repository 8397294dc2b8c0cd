import { spawn } from 'node:child_process';

/** What became of a finished command. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  readonly cwd?: string;
  /** Milliseconds until the command is killed. */
  readonly timeout?: number;
}

/** Runs a command without a shell and waits for its end, whatever its exit code. */
export function runAny(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...options.env },
      stdio: 'pipe',
      timeout: options.timeout ?? 20_000,
      killSignal: 'SIGKILL',
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.on('error', () => undefined).end(options.input ?? '');
  });
}

/** {@link runAny}, but anything other than exit code 0 is an error that shows what the command said. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runAny(command, args, options);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit code ${String(code)}\n${stdout}${stderr}`);
  return stdout;
}
