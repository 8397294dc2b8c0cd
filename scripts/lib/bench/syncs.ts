/** Writes to a file and forces that to disk, over and over, until it is killed: `node syncs.ts FILE`, in a process of its own. */
import { fsyncSync, openSync, writeSync } from 'node:fs';

const PIECE = Buffer.alloc(64 * 1024, 'x');
/** Bytes, after which it begins at the front again. */
const SIZE = 64 * 1024 * 1024;

const file = openSync(process.argv[2] ?? '', 'w');
for (let at = 0; process.ppid > 1; at = (at + PIECE.length) % SIZE) {
  writeSync(file, PIECE, 0, PIECE.length, at);
  fsyncSync(file);
}
