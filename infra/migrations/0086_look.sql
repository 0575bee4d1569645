-- +goose Up
-- How robots look to those who look at them now (cloud/look): one row for each that somebody looked at lately. Nothing here outlives the look.
CREATE UNLOGGED TABLE robot_look (
	thing    text        PRIMARY KEY,
	asked    timestamptz NOT NULL, -- when the robot was told last that somebody looks
	received timestamptz,          -- when the newest frame came; null: none yet
	tree     jsonb,
	frame    jsonb
) WITH (fillfactor = 50); -- a row is written twice a second while it is looked at
