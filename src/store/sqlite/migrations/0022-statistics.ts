/**
 * What is counted of the audit records, by the hour, as they come in: the trigger belongs to their transaction, whichever way they come.
 * What was recorded before is counted once, here. Whether a certificate that ends is revoked stands in the index too.
 */
const what = (record: string): string => `CASE
    WHEN ${record}.type = 'certificate.issued' AND ${record}.line ->> '$.detail' = 'simplereenroll' THEN 'renewed'
    WHEN ${record}.type = 'certificate.issued' THEN 'issued'
    WHEN ${record}.type = 'certificate.denied' THEN 'refused'
    WHEN ${record}.type = 'certificate.failed' THEN 'failed'
    WHEN ${record}.type = 'certificate.revoked' THEN 'revoked'
    WHEN ${record}.type = 'request.queued' THEN 'queued'
    ELSE 'unauthenticated'
  END`;

const IS_COUNTED = (record: string): string =>
  `(${record}.type IN ('certificate.issued', 'certificate.denied', 'certificate.failed', 'certificate.revoked', 'request.queued')
    OR (${record}.type IN ('auth.mtls', 'auth.otp', 'auth.gssapi', 'auth.cmc', 'auth.admin') AND ${record}.line ->> '$.outcome' = 'failure'))`;

export const statistics = `
CREATE TABLE statistic (
  hour  INTEGER NOT NULL, -- of the epoch
  ca    TEXT NOT NULL,    -- '': none
  what  TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (hour, ca, what)
) STRICT, WITHOUT ROWID;

INSERT INTO statistic (hour, ca, what, count)
SELECT audit.time / 3600000, coalesce(audit.line ->> '$.ca', ''), ${what('audit')}, count(*)
FROM audit WHERE ${IS_COUNTED('audit')} GROUP BY 1, 2, 3;

CREATE TRIGGER audit_counted AFTER INSERT ON audit WHEN ${IS_COUNTED('NEW')}
BEGIN
  INSERT INTO statistic (hour, ca, what, count)
  VALUES (NEW.time / 3600000, coalesce(NEW.line ->> '$.ca', ''), ${what('NEW')}, 1)
  ON CONFLICT (hour, ca, what) DO UPDATE SET count = count + 1;
END;

DROP INDEX certificate_by_end;
CREATE INDEX certificate_by_end ON certificate (not_after, revoked_at);
`;
