-- +goose Up
-- The logs that robots uploaded: one row for each object (cloud/uploads).
CREATE TABLE uploads_log (
	id      uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
	key     text        COLLATE "C" NOT NULL UNIQUE, -- of the object
	thing   text        NOT NULL,
	account text        NOT NULL, -- for whom the robot uploaded it
	name    text        NOT NULL, -- what the robot calls it
	size    bigint      NOT NULL,
	os      text        NOT NULL, -- what the robot ran then; '': not known
	at      timestamptz NOT NULL
);
CREATE INDEX uploads_log_thing ON uploads_log (thing, at DESC, id DESC);
CREATE INDEX uploads_log_at ON uploads_log (at);
CREATE INDEX uploads_log_account ON uploads_log (account);
