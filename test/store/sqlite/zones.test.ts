import { expect, test } from 'vitest';
import Database from 'better-sqlite3';
import type { Db } from '../../../src/store/sqlite/database.ts';
import { MIGRATIONS } from '../../../src/store/sqlite/schema.ts';
import { zoneReads } from '../../../src/store/sqlite/search/list-search.ts';

test('a search finds the rows of a block that another process closes meanwhile', () => {
  const db = new Database(':memory:');
  for (const script of MIGRATIONS) db.exec(script);
  let closed = 0;
  const close = (): void => {
    const first = closed * 1024 + 1;
    closed += 1;
    db.prepare("INSERT INTO search_zone VALUES ('certificate.end', ?, ?, 5, 5)").run(first, first + 1023);
  };
  close();
  // Each statement finds another block closed.
  const racing = {
    prepare: (sql: string) => {
      const statement = db.prepare(sql);
      const after =
        <Rest extends unknown[], Result>(read: (...rest: Rest) => Result) =>
        (...rest: Rest): Result => {
          const result = read(...rest);
          close();
          return result;
        };
      return { all: after(statement.all.bind(statement)), get: after(statement.get.bind(statement)) };
    },
  };
  const stretches = zoneReads(racing as unknown as Db, 'certificate.end');
  expect(stretches({ from: 5, to: 5 })).toEqual([{ first: 1, last: undefined }]);
  expect(stretches({ from: 9 })).toEqual([{ first: 2049, last: undefined }]);
});
