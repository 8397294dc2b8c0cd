/** Questions to whoever sits at the terminal; what is secret is not shown while it is typed. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/** undefined: nobody sits there. */
export function terminal(): ((question: string, options: { readonly secret: boolean }) => Promise<string>) | undefined {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  return (question, { secret }) =>
    new Promise((resolve) => {
      stderr.write(question);
      const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
      const lines = createInterface({ input: stdin, output: secret ? silent : stderr, terminal: true });
      lines.once('line', (line) => {
        lines.close();
        if (secret) stderr.write('\n');
        resolve(line.trim());
      });
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    });
}
