-- Usage of jobs whose rows are deleted 30 days after their end. `day`: days since the Unix epoch.
CREATE TABLE usage_days (
  account_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  billed_seconds REAL NOT NULL,
  credit_seconds REAL NOT NULL,
  jobs INTEGER NOT NULL,
  PRIMARY KEY (account_id, day, kind)
);
CREATE INDEX usage_created ON usage_records (created_at, job_id);
CREATE INDEX jobs_ended ON jobs (completed_at) WHERE cleaned_at IS NOT NULL;
-- The request holds the metadata, too.
UPDATE jobs SET metadata = NULL WHERE metadata IS NOT NULL;
