/** What V8's CPU profiler saw of the main thread while it was measured: a flame graph, and where the time goes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** Microseconds of the system's monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** Microseconds. */
  readonly timeDeltas: readonly number[];
}

/** Stacks that have the same beginning. Times in microseconds. */
interface Frame {
  readonly name: string;
  time: number;
  readonly callees: Map<string, Frame>;
}

/** Where the time of a stage went, by itself. */
export interface Profile {
  readonly flames: Frame;
  /** Microseconds by part of the program, the greatest first. */
  readonly parts: readonly (readonly [part: string, time: number])[];
}

/** Not the program's: the loop waits, or runs what is no JavaScript (TLS handshakes, the kernel). */
const IDLE = '(idle)';

/** Whose the time of a function is; the first that fits. */
const PARTS: readonly (readonly [RegExp, string])[] = [
  [/^\(garbage collector\)/, 'garbage collection'],
  [/^\(program\)/, 'Node itself, no JavaScript'],
  [/dist\/(pki|ca\/local\/lint|ca\/local|ca|auth|enrollment|store|http|audit|main)\//, '$1'],
  [/dist\//, 'others of dist'],
  [/node_modules\/(?:@[^/]+\/)?([^/]+)\//, 'node_modules: $1'],
  [/node:internal\/crypto/, 'Node: crypto'],
  [/node:internal\/tls|node:_tls/, 'Node: TLS'],
  [/node:_http/, 'Node: HTTP'],
  [/node:internal\/(streams|stream_base)|node:net/, 'Node: streams and sockets'],
  [/node:internal\/(worker|per_context\/messageport)/, 'Node: messages between threads'],
  [/node:internal\/(timers|process\/task_queues|process\/promises)|node:timers/, 'Node: timers, promises'],
  [/node:internal\/async|node:async/, 'Node: async context'],
  [/node:/, 'Node: others'],
];

/** @param folder where the process wrote its profiles @param window what counts, microseconds of the monotonic clock */
export function readProfile(folder: string, [from, to]: readonly [number, number]): Profile {
  // Thread 0 is the main one; Node puts it into the file's name.
  const name = readdirSync(folder).find((file) => /\.0\.\d+\.cpuprofile$/.test(file));
  if (name === undefined) throw new Error('the server wrote no profile');
  const profile: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  if (!isProfile(profile)) throw new Error(`${name} is no profile`);
  return merge(profile, from, to);
}

function merge(profile: CpuProfile, from: number, to: number): Profile {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const callers = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const own = new Map<number, number>();
  let at = profile.startTime;
  for (const [i, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    if (at >= from && at <= to) own.set(id, (own.get(id) ?? 0) + delta);
  }
  const flames: Frame = { name: 'all', time: 0, callees: new Map() };
  const parts = new Map<string, number>();
  for (const [id, time] of own) {
    const stack: string[] = [];
    for (let one = nodes.get(id); one !== undefined; one = nodes.get(callers.get(one.id) ?? -1))
      stack.unshift(label(one));
    const [, ...frames] = stack;
    const leaf = frames.at(-1);
    if (leaf === undefined || leaf.startsWith(IDLE)) continue;
    const part = partOf(leaf);
    parts.set(part, (parts.get(part) ?? 0) + time);
    flames.time += time;
    let frame = flames;
    for (const name of frames) {
      const callee: Frame = frame.callees.get(name) ?? { name, time: 0, callees: new Map() };
      callee.time += time;
      frame.callees.set(name, callee);
      frame = callee;
    }
  }
  return { flames, parts: [...parts].toSorted(([, a], [, b]) => b - a) };
}

function label({ callFrame: { functionName, url } }: ProfileNode): string {
  const place = url.replace(/^.*\/(dist|node_modules)\//, '$1/');
  return `${functionName || '(anonymous)'} ${place}`.trim();
}

function partOf(name: string): string {
  for (const [pattern, part] of PARTS) {
    const match = pattern.exec(name);
    if (match !== null) return part.replace('$1', match[1] ?? '');
  }
  return 'others';
}

function isProfile(value: unknown): value is CpuProfile {
  return typeof value === 'object' && value !== null && 'nodes' in value && 'samples' in value && 'timeDeltas' in value;
}

const WIDTH = 1600;
const HEIGHT = 17;
/** Pixels below which a frame is left out. */
const THINNEST = 0.5;
/** Of a letter. */
const LETTER = 6.6;

/** The flame graph: callers above their callees, as wide as their time. */
export function flameGraph({ flames }: Profile, title: string): string {
  const boxes: string[] = [];
  let depth = 0;
  const draw = (frame: Frame, x: number, level: number): void => {
    const width = (frame.time / flames.time) * WIDTH;
    if (width < THINNEST) return;
    depth = Math.max(depth, level);
    const share = `${((100 * frame.time) / flames.time).toFixed(1)} %`;
    const y = (level + 1) * HEIGHT;
    const text = frame.name.slice(0, Math.floor((width - 4) / LETTER));
    boxes.push(
      `<g><title>${escape(frame.name)} — ${share}</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${HEIGHT - 1}" fill="${color(frame.name)}"/>` +
        (text.length > 2 ? `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escape(text)}</text>` : '') +
        '</g>',
    );
    let left = x;
    for (const callee of [...frame.callees.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      draw(callee, left, level + 1);
      left += (callee.time / flames.time) * WIDTH;
    }
  };
  draw(flames, 0, 0);
  const height = (depth + 3) * HEIGHT;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">`,
    `<text x="2" y="12">${escape(title)}</text>`,
    ...boxes,
    '</svg>\n',
  ].join('\n');
}

/** Ours warm, Node's cool, packages' green. */
function color(name: string): string {
  const shade = Buffer.from(name).reduce((sum, octet) => (sum * 31 + octet) % 40, 7);
  if (name.includes('dist/')) return `hsl(${20 + shade / 2}, 90%, 70%)`;
  if (name.includes('node_modules/')) return `hsl(${100 + shade}, 50%, 72%)`;
  return `hsl(${200 + shade}, 50%, 80%)`;
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
