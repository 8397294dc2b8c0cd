/** The operations that both drivers have in common. */
import { cmcReads, cmcWrites } from './cmc.ts';
import { crlReads, crlWrites } from './crl.ts';
import { intermediateReads, intermediateWrites } from './intermediates.ts';
import type { Database } from './port.ts';
import { sessionReads, sessionWrites } from './sessions.ts';
import { statisticsReads } from './statistics.ts';

export function commonReads(db: Database) {
  return {
    ...crlReads(db),
    ...cmcReads(db),
    ...intermediateReads(db),
    ...sessionReads(db),
    ...statisticsReads(db),
  };
}

/** @param ofDead the condition on the instance of a CMC message that no living node has */
export function commonWrites(db: Database, ofDead: string) {
  return {
    ...crlWrites(db),
    ...cmcWrites(db, ofDead),
    ...intermediateWrites(db),
    ...sessionWrites(db),
  };
}
