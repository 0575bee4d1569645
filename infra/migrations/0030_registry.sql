-- +goose Up
CREATE TABLE registry_thing (
	thing       text PRIMARY KEY,
	created     timestamptz NOT NULL DEFAULT clock_timestamp(),
	rev         bigint NOT NULL DEFAULT 1,      -- raised by every write: optimistic locking, and the order of changes of one thing
	changed     timestamptz NOT NULL DEFAULT clock_timestamp(),
	present     boolean NOT NULL DEFAULT false,
	since       timestamptz,                    -- of being present or absent; null: never seen
	last_seen   timestamptz,                    -- receipt of the last accepted status
	lease_until timestamptz,
	gone        boolean NOT NULL DEFAULT false, -- the will of this connection came
	boot_id     text NOT NULL DEFAULT '',
	connect_seq bigint NOT NULL DEFAULT 0,
	seq         bigint NOT NULL DEFAULT 0,
	status      json,                           -- the last status, as cloud/api/status writes it (json: a robot may say \u0000)
	clock_ms    bigint NOT NULL DEFAULT 0       -- robot's clock minus ours at that receipt
);
CREATE INDEX registry_thing_lease ON registry_thing (lease_until) WHERE present;
CREATE INDEX registry_thing_changed ON registry_thing (changed);

CREATE TABLE registry_presence (
	thing   text NOT NULL,
	at      timestamptz NOT NULL,
	present boolean NOT NULL,
	PRIMARY KEY (thing, at, present)
);
CREATE INDEX registry_presence_at ON registry_presence (at);

-- One row per outcome of a step, not per attempt: a robot that tries the wrong secret every ten seconds for a week is one row.
CREATE TABLE registry_step (
	thing   text NOT NULL,
	name    text NOT NULL,
	ok      boolean NOT NULL,
	code    text NOT NULL,
	first   timestamptz NOT NULL, -- since then it has been this outcome
	last    timestamptz NOT NULL,
	times   bigint NOT NULL,
	peer    text NOT NULL,
	version text NOT NULL,
	detail  text NOT NULL,
	PRIMARY KEY (thing, name, ok, code)
);
CREATE INDEX registry_step_last ON registry_step (last);
