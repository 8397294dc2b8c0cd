import { pino } from 'pino';
import type { DestinationStream, LevelWithSilent, Logger } from 'pino';

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
      formatters: { log: withoutLongTexts },
      redact: { paths: SECRET_NAMES.flatMap(redacted), censor: '[secret]' },
    },
    destination ?? pino.destination({ dest: 1, sync: false }),
  );
}

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
