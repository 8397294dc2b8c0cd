/** The small EST client on Bouncy Castle: `test/interop/bouncycastle/EstClient.java`. */
import { join } from 'node:path';
import { run } from './command.ts';
import { BOUNCY_CASTLE_JARS, BOUNCY_CASTLE_TLS_JAR } from './requires.ts';
import { ROOT } from './root.ts';

const SOURCE = join(ROOT, 'test', 'interop', 'bouncycastle', 'EstClient.java');
const JARS = BOUNCY_CASTLE_JARS.join(':');

/** What `java` needs to run an operation of the client; EstClient.java tells the options. */
export type EstClientArguments = (operation: string, options: Readonly<Record<string, string>>) => readonly string[];

/**
 * Compiles the client.
 *
 * @param classes folder for the result
 */
export async function compileEstClient(classes: string): Promise<EstClientArguments> {
  await run('javac', ['-cp', JARS, '-d', classes, SOURCE], { timeout: 100_000 });
  // Each run lasts a second: no time for the optimizing compiler.
  const classPath = [JARS, BOUNCY_CASTLE_TLS_JAR, classes].join(':');
  const java = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', classPath, 'EstClient'];
  return (operation, options) => [
    ...java,
    operation,
    ...Object.entries(options).map(([name, value]) => `${name}=${value}`),
  ];
}
