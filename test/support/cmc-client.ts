/** Bouncy Castle's CMC client: the programs in test/interop/bouncycastle, compiled and started once for a test file. */
import { JavaPrograms } from './bouncycastle.ts';
import { BOUNCY_CASTLE_JARS } from './requires.ts';

/** One command of CmcClient, with its options. */
export type CmcCommand = readonly [
  name: 'enroll' | 'revoke' | 'query' | 'confirm' | 'batch' | 'read',
  options: Readonly<Record<string, string>>,
];

/** CMCStatusInfoV2 as Bouncy Castle reads it. */
export interface ReadStatus {
  /** The number. */
  readonly status: number;
  readonly body: readonly number[];
  readonly failInfo: number | undefined;
  /** Hex. */
  readonly pendToken: string | undefined;
  readonly text: string | undefined;
}

export interface ReadResponse {
  /** Whether the signature (or the MAC) is right. */
  readonly verified: boolean;
  readonly statuses: readonly ReadStatus[];
  /** Values by the control's name, the others' OIDs under `control`. */
  readonly controls: ReadonlyMap<string, string>;
  /** The answers to a batch. */
  readonly responses: readonly ReadResponse[];
}

export interface CmcClient {
  /** Runs the commands. @returns what they print */
  run(...commands: readonly CmcCommand[]): Promise<string>;
  /** Reads a PKIResponse. */
  read(options: Readonly<Record<string, string>>): Promise<ReadResponse>;
  /** For each `Class-name.der` in a folder, a `.out` as Bouncy Castle writes it. */
  rewrite(folder: string): Promise<void>;
  stop(): Promise<void>;
}

/** @param folder where the classes go */
export async function compileCmcClient(folder: string): Promise<CmcClient> {
  const java = await JavaPrograms.start(['CmcClient', 'CmcStructures'], BOUNCY_CASTLE_JARS, folder);
  const words = ([name, options]: CmcCommand): string[] => [
    name,
    ...Object.entries(options).map(([option, value]) => `${option}=${value}`),
  ];
  const commands = (all: readonly CmcCommand[]): string[] =>
    all.flatMap((command, i) => (i === 0 ? words(command) : ['--', ...words(command)]));
  return {
    run: (...all) => java.run('CmcClient', ...commands(all)),
    read: async (options) =>
      parse((await java.run('CmcClient', ...words(['read', options]))).split('\n').filter(Boolean)),
    rewrite: async (target) => {
      await java.run('CmcStructures', target);
    },
    stop: () => java.stop(),
  };
}

function parse(lines: readonly string[]): ReadResponse {
  const own = lines.filter((line) => !/^response\d+\./.test(line));
  const nested = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, rest] = /^(response\d+)\.(.*)$/.exec(line) ?? [];
    if (name !== undefined && rest !== undefined) nested.set(name, [...(nested.get(name) ?? []), rest]);
  }
  const pairs = own.map((line): [string, string] => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  });
  return {
    verified: pairs.some(([name, value]) => name === 'verified' && value === 'true'),
    statuses: pairs.filter(([name]) => name === 'status').map(([, value]) => parseStatus(value)),
    controls: new Map(pairs.filter(([name]) => name !== 'status' && name !== 'verified')),
    responses: [...nested.values()].map(parse),
  };
}

function parseStatus(value: string): ReadStatus {
  const field = (name: string): string | undefined => new RegExp(` ${name}=(\\S+)`).exec(value)?.[1];
  const failInfo = field('failInfo');
  return {
    status: Number(/^\d+/.exec(value)?.[0]),
    body: (field('body') ?? '').split(',').map(Number),
    failInfo: failInfo === undefined ? undefined : Number(failInfo),
    pendToken: field('pendToken'),
    text: / text=(.*)$/.exec(value)?.[1],
  };
}
