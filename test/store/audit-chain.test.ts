/** Which events the chain reports as committed. */
import { expect, test } from 'vitest';
import { GENESIS_HASH } from '../../src/audit/record.ts';
import { AuditChain, type AuditHead } from '../../src/store/audit-chain.ts';
import { event, T0 } from './rows.ts';
import { temporaryPaths } from './support.ts';

const EMPTY: AuditHead = { seq: 0, hash: GENESIS_HASH, file_start: 1, file_size: 0 };

/** A chain whose transaction has written its record to the file. */
async function written(): Promise<AuditChain> {
  const chain = new AuditChain(temporaryPaths().auditFile);
  chain.begin(EMPTY, T0);
  chain.add(event('certificate.issued'), T0);
  await chain.flush();
  return chain;
}

const types = (chain: AuditChain): readonly string[] => chain.reported().map(({ type }) => type);

test('the events of a commit are reported once', async () => {
  const chain = await written();
  chain.committed();
  expect(types(chain)).toEqual(['certificate.issued']);
  expect(types(chain)).toEqual([]);
});

test('after a COMMIT without an answer, the next transaction reports the events that the store has', async () => {
  const chain = await written();
  chain.settle();
  chain.begin(chain.head, T0);
  chain.add(event('certificate.revoked'), T0);
  expect(types(chain)).toEqual(['certificate.issued', 'certificate.revoked']);
});

test('records that a commit did not store are reported when the next one adopts them from the file', async () => {
  const chain = await written();
  chain.settle();
  chain.begin(EMPTY, T0);
  expect(types(chain)).toEqual(['certificate.issued', 'audit.recovered']);
});

test('events that were rolled back are not reported', async () => {
  const chain = await written();
  chain.undo();
  chain.settle();
  chain.begin(EMPTY, T0);
  expect(types(chain)).toEqual([]);
});
