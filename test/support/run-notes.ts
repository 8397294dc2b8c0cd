/**
 * What test processes record about a run, for the report at its end (`run-report.ts`): one JSON line per note, in a
 * file that the reporter names in the environment.
 */
import { appendFileSync, readFileSync } from 'node:fs';

/** The environment variable with the path of the file. */
export const RUN_NOTES = 'ESTUARY_RUN_NOTES';

/** `skip`: why tests of a file are left out. `start`: a program was started. `wait`: a test waited for a condition. `cpu`: CPU time of a test file. */
export type NoteKind = 'skip' | 'start' | 'wait' | 'cpu';

export interface RunNote {
  readonly kind: NoteKind;
  /** Path of the test file that skips tests; otherwise empty. */
  readonly file: string;
  /** The reason, the program, the condition, or the test file. */
  readonly what: string;
  /** Milliseconds that it took; 0 for a skip. */
  readonly ms: number;
}

/** Records a note. Does nothing outside a run with the reporter. */
export function recordNote(kind: NoteKind, what: string, ms = 0, file = ''): void {
  const path = process.env[RUN_NOTES];
  if (path === undefined) return;
  const note: RunNote = { kind, file, what, ms: Math.round(ms) };
  appendFileSync(path, `${JSON.stringify(note)}\n`);
}

/** Reads every note of a run. */
export function readNotes(path: string): RunNote[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
    .filter(isNote);
}

function isNote(value: unknown): value is RunNote {
  if (typeof value !== 'object' || value === null) return false;
  return ['kind', 'file', 'what', 'ms'].every((key) => key in value);
}
