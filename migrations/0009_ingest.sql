-- The step that reads a recording was called `plan`. Jobs that wait for it go on under its new name.
UPDATE outbox
SET id = job_id || '/ingest', queue = 'ingest', body = json_object('step', 'ingest', 'jobId', job_id)
WHERE json_extract(body, '$.step') = 'plan';
