import type { Call, Reply } from './calls.ts';
import type { RevocationWatch } from './revoked-serials.ts';

/** What a thread does with the database: it writes, with group commit, or it reads. */
export interface Role {
  /** The names of what it carries out. */
  readonly operations: readonly string[];
  /** One reply for each call, in their order. It never rejects. A group that is under way is the only one. */
  carryOut(calls: readonly Call[]): readonly Reply[] | Promise<readonly Reply[]>;
  /** Present if no other process can revoke. */
  readonly revocations?: RevocationWatch | undefined;
  close(): void | Promise<void>;
}
