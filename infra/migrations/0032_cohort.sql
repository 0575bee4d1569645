-- +goose Up
-- Saved filters of the fleet.
CREATE TABLE cohort_saved (
	name    text COLLATE "C" PRIMARY KEY,
	filter  text NOT NULL,
	note    text NOT NULL DEFAULT '',
	by_whom text NOT NULL, -- who wrote it last
	created timestamptz NOT NULL DEFAULT clock_timestamp(),
	changed timestamptz NOT NULL DEFAULT clock_timestamp(),
	rev     bigint NOT NULL DEFAULT 1
);
