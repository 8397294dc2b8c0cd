/** CPU time by component, from the profiles that V8 writes (`--cpu-prof`) of each thread of the server. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Result } from './load.ts';

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { functionName: string; url: string } }[];
  /** Microseconds of the monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The component of a function: the first pattern that matches its name and file. */
const COMPONENTS: readonly (readonly [RegExp, string])[] = [
  [/^\(idle\)/, ''],
  [/^\(garbage collector\)/, 'garbage collection'],
  [/^\(program\)/, 'Node without JavaScript'],
  [/dist\/packages\/(.+)\.js/, 'package $1'],
  [/dist\/(pki|ca|auth|enrollment|store|http|audit|main)\//, '$1'],
  [/dist\//, 'other files of Estuary'],
  [/node_modules\/(?:@[^/]+\/)?([^/]+)\//, 'package $1'],
  [/node:internal\/crypto/, 'Node: crypto'],
  [/node:internal\/tls|node:_tls/, 'Node: TLS'],
  [/node:_http/, 'Node: HTTP'],
  [/node:internal\/(?:streams|stream_base)|node:net/, 'Node: streams and sockets'],
  [/node:internal\/(?:worker|per_context\/messageport)/, 'Node: messages between threads'],
  [/node:fs|node:internal\/fs/, 'Node: files'],
  [/./, 'Node: others'],
];

function componentOf(frame: string): string {
  for (const [pattern, component] of COMPONENTS) {
    const match = pattern.exec(frame);
    if (match !== null) return component.replace('$1', match[1] ?? '');
  }
  return '';
}

function isProfile(value: unknown): value is CpuProfile {
  return typeof value === 'object' && value !== null && 'nodes' in value && 'samples' in value && 'timeDeltas' in value;
}

/** @param rounds whose time counts @returns a table of microseconds for each enrollment */
export function profileOf(folder: string, pid: number, rounds: readonly Result[]): string {
  const count = rounds.reduce((sum, { answers }) => sum + (answers['200']?.length ?? 0), 0);
  const lines = ['| thread | component | CPU µs |', '|--:|---|--:|'];
  for (const file of readdirSync(folder).filter((name) => name.includes(`.${pid}.`))) {
    const profile: unknown = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    if (!isProfile(profile)) throw new Error(`${file} is not a profile`);
    const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, `${callFrame.functionName} ${callFrame.url}`]));
    const times = new Map<string, number>();
    let at = profile.startTime;
    for (const [n, id] of profile.samples.entries()) {
      const delta = profile.timeDeltas[n] ?? 0;
      at += delta;
      const time = at;
      const component = componentOf(names.get(id) ?? '');
      if (component === '' || !rounds.some(({ window: [from, to] }) => time >= from && time <= to)) continue;
      times.set(component, (times.get(component) ?? 0) + delta);
    }
    const thread = /\.\d+\.(\d+)\.\d+\.cpuprofile$/.exec(file)?.[1] ?? file;
    for (const [component, time] of [...times].toSorted(([, a], [, b]) => b - a))
      lines.push(`| ${thread} | ${component} | ${(time / count).toFixed(0)} |`);
  }
  return lines.join('\n');
}
