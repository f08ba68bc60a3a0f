-- The name that a replaced recording had, so that it is found by a seek and not among all that the account has replaced. It is
-- read out of the row's name (`#KEY#NAME`; `#KEY` has had none) rather than written: rows of before have it at once, and so have
-- those that the version before still renames between this migration and its own end.
ALTER TABLE media ADD COLUMN former_name TEXT GENERATED ALWAYS AS (
  iif(substr(name, 1, 1) = '#', nullif(substr(name, length(object_key) + 3), ''), NULL)
) VIRTUAL;
CREATE INDEX media_former_name ON media (account_id, former_name, created_at) WHERE former_name IS NOT NULL;
