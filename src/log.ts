/** The service's log: what a line shows, and when it is written. */
import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { DestinationStream, LevelWithSilent, Logger } from 'pino';
import { LogOutput, type OutputState, unblockedOutput, writeOnceTo } from './log-output.ts';
import { requestIdField } from './request-context.ts';

export type { DestinationStream, Logger } from 'pino';

/** Lowercase field names that may hold a secret; redacted at every level. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'password',
  'passphrase',
  'pin',
  'token',
  'secret',
  'hmac_key',
  'lookup_key',
  'private_key_pem',
]);
const CENSOR = '[secret]';
/** Maximum characters of a text in the log; client data may be much longer. */
const MAX_TEXT = 4096;
/** Maximum depth of a logged object. */
const MAX_DEPTH = 5;

/**
 * The service's log: one JSON object per line, named `estuary`, times in ISO 8601. Secrets must not be logged; fields
 * with a telltale name are replaced with `[secret]`.
 * @param destination default: standard output
 * @param isTerminal levels are names instead of pino's numbers
 */
export function createLogger(
  level: LevelWithSilent,
  destination?: DestinationStream,
  isTerminal = destination === undefined && isatty(1),
): Logger {
  return pino(
    {
      name: 'estuary',
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      // Adds the ID of the current request.
      mixin: requestIdField,
      // Not pino's own redaction, which cost a request more than the rest of its line.
      formatters: {
        log: (fields) => presentable(fields, 1),
        ...(isTerminal ? { level: (name: string) => ({ level: name }) } : {}),
      },
      // formatters.log has already converted errors.
      serializers: { err: (error: unknown) => error },
    },
    destination ?? toStandardOutput(),
  );
}

let shared: { readonly lines: LineBuffer; readonly output: LogOutput } | undefined;

/** Shared by all loggers of the process, so that lines keep their order. */
function toStandardOutput(): LineBuffer {
  if (shared !== undefined) return shared.lines;
  const fd = unblockedOutput();
  const output = new LogOutput(writeOnceTo(fd), lossLine);
  const lines = new LineBuffer((text) => output.write(text));
  process.on('exit', () => {
    lines.flush();
    output.writeLast(fd);
  });
  shared = { lines, output };
  return lines;
}

/** Whether standard output accepts the log. */
export const logState = (): OutputState => shared?.output.state ?? { lost: 0, problem: undefined };

function lossLine(lost: number): string {
  let line = '';
  createLogger('warn', { write: (text) => void (line = text) }).warn({ lost }, 'log lines are missing here');
  return line;
}

export type RequestLines = Readonly<Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>>;

/** Redacts secrets and truncates long texts; returns the same object if nothing changes, the usual case. */
function presentable(fields: Record<string, unknown>, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(fields)) {
    const shown = SECRET_NAMES.has(name.toLowerCase()) && value !== undefined ? CENSOR : shownValue(value, depth);
    if (shown !== value) copy = { ...(copy ?? fields), [name]: shown };
  }
  return copy ?? fields;
}

function shownValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cutText(value, MAX_TEXT);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '[object]';
  if (Array.isArray(value)) return value.map((item: unknown) => shownValue(item, depth + 1));
  // Serializes itself: a Secret, a Date.
  if ('toJSON' in value) return value;
  const fields = value instanceof Error ? pino.stdSerializers.err(value) : value;
  return presentable({ ...fields }, depth + 1);
}

export function cutText(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}… (${text.length} characters)`;
}

/** Milliseconds that a line may wait for others. */
const MAX_WAIT = 10;
/** Bytes per write: the maximum that a pipe shared by several processes takes atomically. */
const PIECE = 4096;

/**
 * Buffers lines for a few milliseconds, because each write costs more than formatting its line. A line at `warn` or
 * above flushes the buffer at once, and so does process exit.
 */
export class LineBuffer implements DestinationStream {
  readonly #sink: (text: string) => void;
  #lines: string[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: (text: string) => void) {
    this.#sink = sink;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > PIECE) this.flush();
    this.#lines.push(line);
    this.#bytes += bytes;
    if (!CALM.test(line)) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), MAX_WAIT);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#bytes = 0;
    if (text !== '') this.#sink(text);
  }
}

/** Lines of pino's levels below `warn`. */
const CALM = /^\{"level":[123]0,/;
