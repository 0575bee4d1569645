-- +goose Up
-- One thing done to many robots: what was ordered, and what became of it for each.
CREATE TABLE bulk_job (
	id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	num     bigint GENERATED ALWAYS AS IDENTITY,
	key     text, -- the caller's own, so that a request made twice is one job
	by_whom text NOT NULL,
	action  jsonb NOT NULL,
	filter  text NOT NULL, -- that chose the robots; '' if they were named
	total   integer NOT NULL,
	state   text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'cancelled')),
	created timestamptz NOT NULL DEFAULT clock_timestamp(),
	closed  timestamptz,
	UNIQUE (by_whom, key),
	CHECK ((closed IS NULL) = (state = 'running'))
);
CREATE INDEX bulk_job_num ON bulk_job (num);
CREATE INDEX bulk_job_running ON bulk_job (created) WHERE state = 'running';

-- A part is what one task does.
CREATE TABLE bulk_item (
	job    uuid NOT NULL REFERENCES bulk_job (id) ON DELETE CASCADE,
	thing  text COLLATE "C" NOT NULL,
	part   integer NOT NULL,
	state  text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'failed', 'dropped')),
	detail text NOT NULL DEFAULT '',
	at     timestamptz,
	PRIMARY KEY (job, thing)
);
CREATE INDEX bulk_item_open ON bulk_item (job, part) WHERE state = 'open';
CREATE INDEX bulk_item_state ON bulk_item (job, state, thing);
