-- Requests in a rate window to one endpoint; NULL stands for the service's default.
ALTER TABLE accounts ADD COLUMN post_limit INTEGER;
ALTER TABLE accounts ADD COLUMN get_limit INTEGER;
-- When webhook_secret_version was last raised. For a while after that the version before signs too.
ALTER TABLE accounts ADD COLUMN webhook_secret_rotated_at INTEGER;
