import { describe, onTestFinished } from 'vitest';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { storeContract } from '../contract/index.ts';
import { temporaryPaths } from '../support.ts';
import { startWriterHere, type Writer } from '../writer.ts';

describe('issue 12.7: the SQLite store keeps the contract with threads of its own', () => {
  storeContract(() => {
    const paths = temporaryPaths();
    return {
      async open(now) {
        const store = await openStore({ ...paths, ...(now === undefined ? {} : { now }) });
        onTestFinished(() => store.close());
        return store;
      },
    };
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
