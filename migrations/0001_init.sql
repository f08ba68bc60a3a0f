-- Times are milliseconds since the Unix epoch. JSON columns hold validated documents.
CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  subscribed INTEGER NOT NULL DEFAULT 0,
  credit_seconds REAL NOT NULL DEFAULT 0,
  -- The secret itself is derived from the service's signing key and never stored.
  webhook_secret_version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
);
CREATE INDEX api_keys_account ON api_keys (account_id);

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  request TEXT NOT NULL,
  metadata TEXT,
  webhook_url TEXT,
  webhook_status_only INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  completed_at INTEGER,
  shard_count INTEGER,
  duration_seconds REAL,
  output_key TEXT,
  error_code TEXT,
  error_message TEXT,
  deleted_at INTEGER,
  cleaned_at INTEGER
);
CREATE INDEX jobs_account_created ON jobs (account_id, created_at DESC, id DESC);
CREATE INDEX jobs_completed ON jobs (completed_at) WHERE cleaned_at IS NULL;

CREATE TABLE idempotency_keys (
  account_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  job_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, idempotency_key)
);
CREATE INDEX idempotency_created ON idempotency_keys (created_at);

-- One row per message that must still be handled; see docs/architecture.md.
CREATE TABLE outbox (
  id TEXT PRIMARY KEY,
  job_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  body TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  starts INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_lease ON outbox (lease_until);
CREATE INDEX outbox_job ON outbox (job_id);

CREATE TABLE usage_records (
  job_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  billed_seconds REAL NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX usage_account ON usage_records (account_id, created_at);

CREATE TABLE media (
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  object_key TEXT NOT NULL,
  size_bytes INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
);
CREATE INDEX media_expires ON media (expires_at);
