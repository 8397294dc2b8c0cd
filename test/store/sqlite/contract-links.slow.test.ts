import { describe } from 'vitest';
import { storeContract } from '../contract/index.ts';
import { openedInThreads, temporaryPaths } from '../support.ts';
import { startWriterHere, type Writer } from '../writer.ts';

describe('issue 12.7: the SQLite store keeps the contract with threads of its own', () => {
  storeContract(() => {
    const paths = temporaryPaths();
    return { open: (now) => openedInThreads(paths, now) };
  });
});

describe('issue 14.3: the SQLite store keeps the contract where another process writes it', () => {
  storeContract(() => {
    const paths = temporaryPaths();
    let writer: Promise<Writer> | undefined;
    return {
      open: async (now) =>
        (await (writer ??= startWriterHere(paths))).open('a worker', now === undefined ? {} : { now }),
    };
  });
});
