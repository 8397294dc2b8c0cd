/** What is run after a change: a shell's command line, with what has changed in its environment. */
import { spawn } from 'node:child_process';
import { ClientError } from './client-error.ts';

/** Its last words are told when it fails. */
const MAX_OUTPUT = 4096;

/** @returns when it has ended well. @throws ClientError `HOOK_FAILED` */
export type RunHook = (
  command: string,
  environment: Readonly<Record<string, string>>,
  timeout: number,
) => Promise<void>;

export const runHook: RunHook = (command, environment, timeout) =>
  new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', command], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout,
      killSignal: 'SIGKILL',
    });
    let output = '';
    const take = (chunk: Buffer): void => void (output = (output + chunk.toString('utf8')).slice(-MAX_OUTPUT));
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const fail = (reason: string): void =>
      reject(new ClientError('local', 'HOOK_FAILED', `"${command}" ${reason}${lastLine(output)}`));
    child.on('error', (error) => fail(error.message));
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else fail(signal === null ? `ended with ${code ?? 'nothing'}` : `was ended by ${signal}`);
    });
  });

function lastLine(output: string): string {
  const line = output.trim().split('\n').at(-1) ?? '';
  return line === '' ? '' : `: ${line.slice(0, 300)}`;
}
