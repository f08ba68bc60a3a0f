-- Live streams. `input` holds what was asked for, without voiceprints; those are with the stream's Durable Object alone.
CREATE TABLE live_streams (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  -- created, running, done, error
  status TEXT NOT NULL,
  input TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER
);
-- Streams that count as open.
CREATE INDEX live_streams_open ON live_streams (account_id) WHERE completed_at IS NULL;
