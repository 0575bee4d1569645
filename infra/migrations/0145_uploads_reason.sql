-- +goose Up
-- Logs are found by version, reason and kind, too (VEC-LOG-10). The name of a log decides its kind: edge/agent/health makes the names.
ALTER TABLE uploads_log ADD COLUMN reason text NOT NULL DEFAULT ''; -- a word of the robot for why it sent the log; '': not said
ALTER TABLE uploads_log ADD COLUMN kind text NOT NULL GENERATED ALWAYS AS (CASE
	WHEN name LIKE 'victor-%.log.gz' THEN 'snapshot'
	WHEN name LIKE 'diagnostics-%.tar.bz2' THEN 'diagnostics'
	WHEN name LIKE 'fault-%' THEN 'fault'
	ELSE 'log' END) STORED;
