/** Which nodes live, who of them does what one has to do, and what they share. */
export const NODE_TABLES = `
CREATE TABLE node (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- anew each time that it starts, or was taken for dead
  host        text NOT NULL,
  instances   text[] NOT NULL, -- its process: the owner of reservations and CMC messages
  started     timestamptz NOT NULL,
  heartbeat   timestamptz NOT NULL -- by the database's clock
);
CREATE TABLE duty (
  name        text PRIMARY KEY,
  incarnation uuid NOT NULL, -- of the node that has it
  until       timestamptz NOT NULL
);
CREATE TABLE shared_secret (
  name        text PRIMARY KEY,
  period      bigint NOT NULL,
  sealed      bytea NOT NULL -- under store.shared_key
);
`;
