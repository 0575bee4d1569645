-- +goose Up
-- Archives of releases, and the channels that offer releases to original robots (cloud/artifact). The key of an archive's object follows from its columns.
CREATE TABLE artifact_archive (
	species  text NOT NULL,
	sha256   text NOT NULL, -- of the whole archive, hex
	version  text NOT NULL,
	kind     text NOT NULL, -- production, delta or factory
	base     text NOT NULL, -- the version that a delta changes; else ''
	qsn      text NOT NULL, -- the only robot that it is for; '': any
	dev      boolean NOT NULL,
	size     bigint NOT NULL,
	manifest jsonb NOT NULL,
	created  timestamptz NOT NULL DEFAULT clock_timestamp(),
	by_whom  text NOT NULL,
	PRIMARY KEY (species, sha256),
	CONSTRAINT artifact_archive_place UNIQUE (species, version, kind, base, qsn)
);

-- What a channel offers is its last row; earlier ones say which releases it ever offered. '': it offers none.
CREATE TABLE artifact_channel (
	num     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	species text NOT NULL,
	channel text NOT NULL,
	version text NOT NULL,
	since   timestamptz NOT NULL DEFAULT clock_timestamp(),
	by_whom text NOT NULL
);
CREATE INDEX artifact_channel_last ON artifact_channel (species, channel, num DESC);
