/** Worker thread that shows a file's growth while the main thread blocks (growth.ts). */
import { statSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { Check } from 'typebox/value';
import { Growth } from './growth.ts';
import { progress } from './progress.ts';

const MEGABYTE = 1_000_000;
/** Milliseconds. */
const LOOK = 250;
const STDERR = 2;

const growth: unknown = workerData;
if (!Check(Growth, growth)) throw new TypeError('not a message for the thread that watches a file');
const { file, total, what, columns } = growth;
const terminal =
  columns === undefined ? {} : { terminal: { errColumns: columns, outColumns: undefined, ask: undefined } };
const shown = progress(
  { now: Date.now, err: (text) => void writeSync(STDERR, text), ...terminal },
  { what, unit: 'MB' },
);

// The main thread terminates this one.
setInterval(() => {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  shown.update(Math.round(size / MEGABYTE), Math.ceil(total / MEGABYTE));
}, LOOK);
