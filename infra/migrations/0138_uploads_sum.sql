-- +goose Up
-- What robots send themselves is stored once for each content and name (cloud/uploads). null: from before, or stored by the S3 door.
ALTER TABLE uploads_log ADD COLUMN sha256 bytea;
CREATE UNIQUE INDEX uploads_log_sum ON uploads_log (thing, sha256, name) WHERE sha256 IS NOT NULL;
