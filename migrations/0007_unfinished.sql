-- What an account has begun and not ended is set aside from its credit.
CREATE INDEX jobs_unfinished ON jobs (account_id) WHERE completed_at IS NULL;
