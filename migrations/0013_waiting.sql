-- Finds the stored recordings that unfinished jobs need.
CREATE INDEX jobs_media ON jobs (account_id, json_extract(request, '$.url'))
WHERE completed_at IS NULL AND substr(json_extract(request, '$.url'), 1, 8) = 'media://';
-- Rows of live streams are deleted 30 days after their end.
CREATE INDEX live_streams_ended ON live_streams (completed_at) WHERE completed_at IS NOT NULL;
-- Where the next run of a sweep continues when one run has reached its limit.
CREATE TABLE sweep_positions (
  sweep TEXT PRIMARY KEY,
  position TEXT NOT NULL
);
