import { describe } from 'vitest';
import { storeContract } from '../contract/index.ts';
import { opened, temporaryPaths } from '../support.ts';

describe('the SQLite store keeps the contract of every driver', () => {
  storeContract(() => {
    const paths = temporaryPaths();
    return { open: (now, onCommit) => opened(paths, now, onCommit) };
  });
});
