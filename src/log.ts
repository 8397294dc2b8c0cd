import { pino } from 'pino';
import type { DestinationStream, LevelWithSilent, Logger } from 'pino';
import { requestIdField } from './request-context.ts';

export type { Logger } from 'pino';

/** Names under which a secret could come along in a logged object; each is cut out at the first three levels. */
const SECRET_NAMES = [
  'authorization',
  'Authorization',
  '["proxy-authorization"]',
  'cookie',
  'password',
  'passphrase',
  'pin',
  'token',
  'secret',
  'hmac_key',
  'lookup_key',
  'private_key_pem',
] as const;

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
      formatters: { log: withoutLongTexts },
      redact: { paths: SECRET_NAMES.flatMap(redacted), censor: '[secret]' },
    },
    destination ?? pino.destination({ dest: 1, sync: false }),
  );
}

/** What the lines of requests are written with. */
export type RequestLines = Readonly<Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>>;

/**
 * The same log for the lines of requests: their fields are fixed and hold no secret, and the search for one would cost
 * more than all else about a line. What clients send is cut by whoever fills them in.
 */
export function requestLines(log: RequestLines & Partial<Pick<Logger, 'child' | 'isLevelEnabled'>>): RequestLines {
  const plain = log.child?.({}, { redact: [], formatters: { log: asItIs }, level: 'trace' });
  if (plain === undefined) return log;
  // The level is the log's own, which a reload may change.
  const at =
    (level: keyof RequestLines) =>
    (fields: object, message: string): void => {
      if (log.isLevelEnabled?.(level) !== false) plain[level](fields, message);
    };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

const asItIs = (fields: object): object => fields;

/** The paths of one name: by itself, one and two levels down. */
function redacted(name: string): string[] {
  return name.startsWith('[') ? [name, `*${name}`, `*.*${name}`] : [name, `*.${name}`, `*.*.${name}`];
}

/** Characters of a text in the log; what a client sends may be much longer. */
const MAX_TEXT = 4096;

function withoutLongTexts(fields: Record<string, unknown>): Record<string, unknown> {
  const long = Object.entries(fields).filter(([, value]) => typeof value === 'string' && value.length > MAX_TEXT);
  if (long.length === 0) return fields;
  return { ...fields, ...Object.fromEntries(long.map(([name, value]) => [name, cutText(String(value), MAX_TEXT)])) };
}

/** The text, or its beginning and how much of it there was. */
export function cutText(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}… (${text.length} characters)`;
}
