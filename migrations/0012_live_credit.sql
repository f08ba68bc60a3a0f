-- Audio that a live stream has received, noted every minute of it: what it has used of the credit so far.
ALTER TABLE live_streams ADD COLUMN used_seconds REAL NOT NULL DEFAULT 0;
