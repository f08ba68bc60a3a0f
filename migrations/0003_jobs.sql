-- Lists of an account's jobs, newest first, with and without a status; deleted jobs are in neither.
CREATE INDEX jobs_list ON jobs (account_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX jobs_list_status ON jobs (account_id, status, created_at DESC, id DESC) WHERE deleted_at IS NULL;
-- Took deleted jobs in as well; jobs_list stands in for it.
DROP INDEX jobs_account_created;

-- Deleted jobs whose objects the sweep must still look for.
CREATE INDEX jobs_deleted ON jobs (deleted_at) WHERE deleted_at IS NOT NULL AND cleaned_at IS NULL;

-- Deleting a job frees its idempotency key.
CREATE INDEX idempotency_job ON idempotency_keys (job_id);
