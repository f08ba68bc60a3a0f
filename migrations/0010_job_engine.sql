-- The job's Durable Object hands out shards, so the outbox holds no rows for them. A job that had such rows runs its
-- ingest step again, which uses the stored chunks.
INSERT OR REPLACE INTO outbox (id, job_id, queue, body, due_at, lease_until)
SELECT DISTINCT job_id || '/ingest', job_id, 'ingest', json_object('step', 'ingest', 'jobId', job_id), 0, 0
FROM outbox WHERE json_extract(body, '$.step') = 'shard';
DELETE FROM outbox
WHERE queue IN ('jobs', 'transcripts') AND job_id IN (SELECT job_id FROM outbox WHERE queue = 'ingest');
UPDATE outbox SET queue = 'priority' WHERE queue = 'jobs';

-- Start of reading, replaced by the start of analysis: a job fails 24 hours after this time.
ALTER TABLE jobs ADD COLUMN started_at INTEGER;
-- Seconds of audio, an estimate until the duration is known. NULL while the job waits to be admitted.
ALTER TABLE jobs ADD COLUMN work_seconds REAL;
-- Sum of work_seconds over the account's unfinished jobs.
ALTER TABLE accounts ADD COLUMN work_seconds REAL NOT NULL DEFAULT 0;
UPDATE jobs SET started_at = updated_at WHERE status = 'running';
UPDATE jobs SET work_seconds = COALESCE(duration_seconds, 3600) WHERE completed_at IS NULL;
UPDATE accounts SET work_seconds = COALESCE((
  SELECT SUM(work_seconds) FROM jobs WHERE account_id = accounts.id AND completed_at IS NULL
), 0);
CREATE INDEX jobs_waiting ON jobs (account_id, created_at, id) WHERE status = 'pending' AND work_seconds IS NULL;
CREATE INDEX jobs_running ON jobs (started_at) WHERE status = 'running';
