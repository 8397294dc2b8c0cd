/** A record of the API. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import type { Method, Query } from './client.ts';
import type { JsonRecord } from './json.ts';
import { printRecord, type FormatValues } from './output.ts';

interface RecordCall {
  readonly method?: Method;
  readonly path: string;
  readonly query?: Query;
  readonly body?: JsonRecord;
}

/** A command whose call answers with a record, which it prints. @param callOf may throw UsageError */
export function records<V extends FormatValues>(callOf: (values: V, now: number) => RecordCall) {
  return {
    async run(values: V, session: Session): Promise<number> {
      const { method = 'GET', path, ...call } = callOf(values, session.now());
      printRecord(await session.client.record(method, path, call), values, session);
      return EXIT.ok;
    },
  };
}

/** A part of a path. */
export const inPath = (text: string): string => encodeURIComponent(text);
