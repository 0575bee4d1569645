-- +goose Up
-- Metadata of releases (cloud/vouch): every version of root, and of each other role the latest ones.
CREATE TABLE vouch_metadata (
	role    text NOT NULL,
	version bigint NOT NULL,
	body    bytea NOT NULL, -- JSON, as it was signed
	created timestamptz NOT NULL DEFAULT clock_timestamp(),
	by_whom text NOT NULL,
	PRIMARY KEY (role, version)
);
