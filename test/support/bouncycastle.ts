/** The small EST client on Bouncy Castle: `test/interop/bouncycastle/EstClient.java`. */
import { join } from 'node:path';
import { run } from './command.ts';
import { BOUNCY_CASTLE_JARS, BOUNCY_CASTLE_TLS_JAR } from './requires.ts';
import { ROOT } from './root.ts';

const SOURCE = join(ROOT, 'test', 'interop', 'bouncycastle', 'EstClient.java');
const JARS = BOUNCY_CASTLE_JARS.join(':');

/** Programs here end within seconds: no time for the optimizing compiler. */
const BRIEF = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/** Compiles Java sources. @param classes folder for the result */
export async function compileJava(sources: readonly string[], jars: string, classes: string): Promise<void> {
  await run('javac', [...BRIEF.map((option) => `-J${option}`), '-cp', jars, '-d', classes, ...sources], {
    timeout: 200_000,
  });
}

/** The arguments of `java` for a class with arguments. */
export const javaArguments = (classPath: readonly string[], ...args: readonly string[]): readonly string[] => [
  ...BRIEF,
  '-cp',
  classPath.join(':'),
  ...args,
];

/** What `java` needs to run an operation of the client; EstClient.java tells the options. */
export type EstClientArguments = (operation: string, options: Readonly<Record<string, string>>) => readonly string[];

/**
 * Compiles the client.
 *
 * @param classes folder for the result
 */
export async function compileEstClient(classes: string): Promise<EstClientArguments> {
  await compileJava([SOURCE], JARS, classes);
  const java = javaArguments([JARS, BOUNCY_CASTLE_TLS_JAR, classes], 'EstClient');
  return (operation, options) => [
    ...java,
    operation,
    ...Object.entries(options).map(([name, value]) => `${name}=${value}`),
  ];
}
