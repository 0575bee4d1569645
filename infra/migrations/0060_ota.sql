-- +goose Up
CREATE TABLE ota_release (
	species text NOT NULL,
	version text NOT NULL,
	notes   text NOT NULL,
	created timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (species, version)
);

-- What a thing, or each thing of a species, should run. A species has no colon, so that the two never meet.
CREATE TABLE ota_desired (
	scope   text PRIMARY KEY,
	version text NOT NULL,
	since   timestamptz NOT NULL DEFAULT clock_timestamp(),
	by_whom text NOT NULL
);

CREATE TABLE ota_status (
	thing    text NOT NULL,
	id       text NOT NULL,
	received timestamptz NOT NULL DEFAULT clock_timestamp(),
	release  text NOT NULL,
	running  text NOT NULL,
	phase    text NOT NULL,
	code     integer NOT NULL,
	reason   text NOT NULL,
	ts       bigint NOT NULL,
	PRIMARY KEY (thing, id)
);
CREATE INDEX ota_status_received ON ota_status (thing, received DESC);
