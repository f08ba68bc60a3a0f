-- Shards have no messages here any more: the job's Durable Object hands them out. A job that had some reads its recording again;
-- what is stored of it is used.
INSERT OR REPLACE INTO outbox (id, job_id, queue, body, due_at, lease_until)
SELECT DISTINCT job_id || '/ingest', job_id, 'ingest', json_object('step', 'ingest', 'jobId', job_id), 0, 0
FROM outbox WHERE json_extract(body, '$.step') = 'shard';
DELETE FROM outbox WHERE queue IN ('jobs', 'transcripts') AND job_id IN (SELECT job_id FROM outbox WHERE queue = 'ingest');
UPDATE outbox SET queue = 'priority' WHERE queue = 'jobs';

-- When the job's recording began to be read, later when its analysis began: a job that takes a day from there fails.
ALTER TABLE jobs ADD COLUMN started_at INTEGER;
-- Audio that the job counts for in its account's work, estimated until the duration is known. NULL while it waits for its turn.
ALTER TABLE jobs ADD COLUMN work_seconds REAL;
-- Sum over the unfinished jobs of the account that do not wait.
ALTER TABLE accounts ADD COLUMN work_seconds REAL NOT NULL DEFAULT 0;
UPDATE jobs SET started_at = updated_at WHERE status = 'running';
UPDATE jobs SET work_seconds = COALESCE(duration_seconds, 3600) WHERE completed_at IS NULL;
UPDATE accounts SET work_seconds = COALESCE((
  SELECT SUM(work_seconds) FROM jobs WHERE account_id = accounts.id AND completed_at IS NULL
), 0);
CREATE INDEX jobs_waiting ON jobs (account_id, created_at, id) WHERE status = 'pending' AND work_seconds IS NULL;
CREATE INDEX jobs_running ON jobs (started_at) WHERE status = 'running';
