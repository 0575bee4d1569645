-- +goose Up
-- What clients of SWUpdate compare a file with (cloud/artifact); '' for other archives.
ALTER TABLE artifact_archive ADD COLUMN sha1 text NOT NULL DEFAULT '', ADD COLUMN md5 text NOT NULL DEFAULT '';
