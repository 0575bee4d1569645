-- +goose Up
-- What operators asked of robots, and what became of it. num is the order in which a thing gets its commands.
CREATE TABLE command_outbox (
	id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	num         bigint GENERATED ALWAYS AS IDENTITY,
	thing       text NOT NULL,
	kind        text NOT NULL,
	args        json NOT NULL,
	by_whom     text NOT NULL,
	key         text, -- the caller's own, so that a request made twice is one command
	created     timestamptz NOT NULL DEFAULT clock_timestamp(),
	expires     timestamptz NOT NULL,
	state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'done', 'failed', 'expired')),
	sends       integer NOT NULL DEFAULT 0,
	closed      timestamptz,
	status      text, -- what the robot said; null: nothing came before the expiry
	detail      text,
	finished_ms bigint,
	UNIQUE (thing, by_whom, key),
	CHECK ((closed IS NULL) = (state IN ('pending', 'sent')))
);
CREATE INDEX command_outbox_open ON command_outbox (thing, num) WHERE closed IS NULL;
CREATE INDEX command_outbox_expires ON command_outbox (expires) WHERE closed IS NULL;
CREATE INDEX command_outbox_thing ON command_outbox (thing, num DESC);
CREATE INDEX command_outbox_closed ON command_outbox (closed) WHERE closed IS NOT NULL;

-- When each thing's oldest open command is to be sent next; infinity: nothing is open. Its row is the lock of a thing's commands.
CREATE TABLE command_due (
	thing     text PRIMARY KEY,
	next_send timestamptz NOT NULL,
	tries     integer NOT NULL DEFAULT 0
);
CREATE INDEX command_due_next_send ON command_due (next_send);
