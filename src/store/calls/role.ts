import type { Call, Reply } from './calls.ts';
import type { RevocationWatch } from './revoked-serials.ts';

/** Who has the database: one that writes, with group commit, or one that reads beside it. */
export interface Role {
  /** The names of what it carries out. */
  readonly operations: readonly string[];
  /** One reply for each call, in their order. It never rejects. A group that is under way is the only one. */
  carryOut(calls: readonly Call[]): readonly Reply[] | Promise<readonly Reply[]>;
  /** Where it alone revokes. */
  readonly revocations?: RevocationWatch | undefined;
  close(): void | Promise<void>;
}
