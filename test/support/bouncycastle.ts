/** Programs on Bouncy Castle, and the small EST client: `test/interop/bouncycastle/EstClient.java`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from './command.ts';
import { BOUNCY_CASTLE_JARS, BOUNCY_CASTLE_TLS_JAR } from './requires.ts';
import { ROOT } from './root.ts';

const SOURCES = join(ROOT, 'test', 'interop', 'bouncycastle');
const SOURCE = join(SOURCES, 'EstClient.java');
const JARS = BOUNCY_CASTLE_JARS.join(':');

/** Programs here end within seconds: no time for the optimizing compiler. */
export const BRIEF = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

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

/** Java programs, which run one after the other in one process: its start takes a second of CPU. */
export class JavaPrograms {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(process: ChildProcess) {
    this.#process = process;
    if (process.stdout === null) throw new TypeError('no stdout');
    this.#answers = createInterface({ input: process.stdout })[Symbol.asyncIterator]();
    this.#exited = once(process, 'exit');
  }

  /** Compiles the sources of test/interop/bouncycastle, and starts a process for them. @param classes folder for the result */
  static async start(names: readonly string[], jars: readonly string[], classes: string): Promise<JavaPrograms> {
    const sources = [...names, 'Programs'].map((name) => join(SOURCES, `${name}.java`));
    await compileJava(sources, jars.join(':'), classes);
    const stdio = ['pipe', 'pipe', 'inherit'] as const;
    return new JavaPrograms(spawn('java', javaArguments([...jars, classes], 'Programs'), { stdio: [...stdio] }));
  }

  /** @returns what it prints @throws {Error} with that, if the program fails */
  run(program: string, ...args: readonly string[]): Promise<string> {
    const answer = this.#last.then(() => this.#run([program, ...args]));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #run(words: readonly string[]): Promise<string> {
    this.#process.stdin?.write(`${words.map((word) => `.${Buffer.from(word).toString('base64')}`).join(' ')}\n`);
    const next: { readonly value: unknown } = await this.#answers.next();
    const [outcome, printed = ''] = typeof next.value === 'string' ? next.value.split(' ') : [];
    const text = Buffer.from(printed, 'base64').toString('utf8');
    if (outcome === 'ok') return text;
    throw new Error(`${words.join(' ')}: ${outcome ?? 'java has ended'}\n${text}`);
  }

  async stop(): Promise<void> {
    this.#process.stdin?.end();
    await this.#exited;
  }
}

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
