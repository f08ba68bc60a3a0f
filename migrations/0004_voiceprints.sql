-- What a job takes from the credit of an account without subscription: for most kinds the billed seconds; a voiceprint has a fixed price.
ALTER TABLE usage_records ADD COLUMN credit_seconds REAL NOT NULL DEFAULT 0;
UPDATE usage_records SET credit_seconds = billed_seconds;
