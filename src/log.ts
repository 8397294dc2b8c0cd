import { pino } from 'pino';
import type { DestinationStream, LevelWithSilent, Logger } from 'pino';
import { LineBuffer } from './log-lines.ts';
import { requestIdField } from './request-context.ts';

export type { Logger } from 'pino';

/** Names under which a secret could come along in a logged object, in lower case; each is cut out at every level. */
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
/** Characters of a text in the log; what a client sends may be much longer. */
const MAX_TEXT = 4096;
/** Levels of an object that are logged. */
const MAX_DEPTH = 5;

/**
 * The log of the service: one JSON object a line, named `estuary`, times in ISO 8601. Secrets never belong into a log
 * call; what slips in under a telling name is replaced by `[secret]`.
 *
 * @param destination standard output unless given
 */
export function createLogger(level: LevelWithSilent, destination?: DestinationStream): Logger {
  return pino(
    {
      name: 'estuary',
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      // Whatever is logged for a request has its id.
      mixin: requestIdField,
      // Not pino's own redaction, which cost a request more than the rest of its line.
      formatters: { log: (fields) => presentable(fields, 1) },
      // An error has been made presentable like everything else.
      serializers: { err: (error: unknown) => error },
    },
    destination ?? toStandardOutput(),
  );
}

let standardOutput: LineBuffer | undefined;

/** One for all loggers of the process, so that their lines keep their order. */
function toStandardOutput(): LineBuffer {
  if (standardOutput !== undefined) return standardOutput;
  const lines = new LineBuffer();
  process.on('exit', () => lines.end());
  return (standardOutput = lines);
}

/** What the lines of requests are written with. */
export type RequestLines = Readonly<Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>>;

/** The fields without secrets and with long texts cut: themselves where nothing had to be done, which is nearly always. */
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
  // What says itself how it is shown: a Secret, a Date.
  if ('toJSON' in value) return value;
  const fields = value instanceof Error ? pino.stdSerializers.err(value) : value;
  return presentable({ ...fields }, depth + 1);
}

/** The text, or its beginning and how much of it there was. */
export function cutText(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}… (${text.length} characters)`;
}
