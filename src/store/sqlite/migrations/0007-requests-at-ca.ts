/** Requests that a remote CA decides about, under its own reference; without one, what became of the submission is not known. */
export const requestsAtCa = `
ALTER TABLE request ADD COLUMN decider TEXT NOT NULL DEFAULT 'admin' CHECK (decider IN ('admin', 'ca'));
ALTER TABLE request ADD COLUMN reference TEXT;
ALTER TABLE request ADD COLUMN polled_at INTEGER; -- when somebody last asked for it
ALTER TABLE request ADD COLUMN missing_since INTEGER; -- the CA works, and does not know it
ALTER TABLE request ADD COLUMN final INTEGER NOT NULL DEFAULT 0; -- failed for good: the same one is not queued anew
`;
