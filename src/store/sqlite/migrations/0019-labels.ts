/** The label that a certificate is asked for at, where that is another than its CA's own. */
export const labels = `
ALTER TABLE reservation ADD COLUMN label TEXT;
ALTER TABLE certificate ADD COLUMN label TEXT;
CREATE INDEX certificate_by_label ON certificate (label) WHERE label IS NOT NULL;
CREATE INDEX certificate_of_other_label ON certificate (ca) WHERE label IS NOT NULL;
`;
