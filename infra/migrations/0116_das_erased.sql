-- +goose Up
-- Stretches of robots' time whose events are being erased, or were a while ago: a process that was late may have written more of them, which a
-- second pass removes. Nothing here says whose they were; the row goes with that pass.
CREATE TABLE das_erased (
    thing text        NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    added timestamptz NOT NULL DEFAULT clock_timestamp(),
    upto  timestamptz NOT NULL DEFAULT '-infinity', -- the raw batches received before are erased
    PRIMARY KEY (thing, since)
);
COMMENT ON COLUMN das_group.raw_key IS 'where the batches were put as they came; package archive joins such objects';

-- Days with profile ids that still name their account: a job puts their keyed hash in their place. A day that is over and done leaves this list;
-- today's and those to come are on it because processes of the former release may still write to them.
CREATE TABLE das_unkeyed (day text PRIMARY KEY);
INSERT INTO das_unkeyed SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'das_event'::regclass AND c.relname ~ '^das_event_[0-9]{8}$';
