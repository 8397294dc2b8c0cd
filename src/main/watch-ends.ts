/** Warns before files that the service depends on expire; ca/expiry.ts does so for CAs. */
import type { CertificateExpiry } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import type { Logger } from '../log.ts';
import { every } from '../process/turns.ts';

interface EndsOptions {
  readonly ends: () => readonly CertificateExpiry[];
  readonly config: Pick<Config, 'tls'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

const DAY = 86_400_000;
/** Days before expiry for a manual renewal. */
const NEAR_END = 30;
/** The same for certificates that the service renews automatically a month before expiry. */
const NOT_RENEWED = 20;
/** Reported by expiry.ts. */
const WATCHED_ELSEWHERE = ['ca', 'ocsp'];

/** Checks now and daily. Returns a function that stops it. */
export function watchExpiries({ ends, config, log, now }: EndsOptions): () => void {
  return every(DAY, () => {
    for (const { use, ca, subject, serial, notAfter } of ends()) {
      const days = Math.floor((notAfter - now()) / DAY);
      const renewed = use === 'tls' && config.tls.automatic !== undefined;
      if (WATCHED_ELSEWHERE.includes(use) || days >= (renewed ? NOT_RENEWED : NEAR_END)) continue;
      log.warn(
        {
          use,
          ...(ca === '' ? {} : { ca }),
          subject,
          serial,
          days_left: days,
          not_after: new Date(notAfter).toISOString(),
        },
        days < 0 ? 'a certificate has expired' : 'a certificate expires soon',
      );
    }
  });
}
