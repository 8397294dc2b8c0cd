/** The accounts of this server at ACME servers. */
import { undone } from './calls/calls.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';

export interface AcmeAccount {
  /** The URL of the server's directory. */
  readonly directory: string;
  /** RFC 7638 */
  readonly thumbprint: string;
}

export function acmeAccountReads(db: Database) {
  return {
    /** The account's URL. */
    getAcmeAccount: quickRead(function* ({ directory, thumbprint }: AcmeAccount): Operation<string | undefined> {
      const sql = 'SELECT url FROM acme_account WHERE directory = ? AND thumbprint = ?';
      return (yield* db.get<{ url: string }>(sql, directory, thumbprint))?.url;
    }),
  };
}

export function acmeAccountWrites(db: Database) {
  return {
    putAcmeAccount: write(lock.account, function* (account: AcmeAccount, url: string): Write<void> {
      const { directory, thumbprint } = account;
      yield* db.run`INSERT INTO acme_account (directory, thumbprint, url) VALUES (${directory}, ${thumbprint}, ${url})
        ON CONFLICT (directory, thumbprint) DO UPDATE SET url = excluded.url`;
      return undone(undefined);
    }),
  };
}

/** Accounts at ACME servers. */
export type AcmeAccountStore = Calls<ReturnType<typeof acmeAccountReads> & ReturnType<typeof acmeAccountWrites>>;
