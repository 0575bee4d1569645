-- +goose Up
-- How robots were: one row of each robot, grain and slot of time (cloud/vitals). A column is null for what the robot did not say.
CREATE TABLE vitals_sample (
	thing       text        NOT NULL,
	every       integer     NOT NULL, -- length of the slot in seconds
	at          timestamptz NOT NULL, -- its begin
	volts       float8,               -- the last
	low         float8,               -- the lowest, volts
	temperature float8,               -- the highest, degrees Celsius
	late_p99    float8,               -- the worst, microseconds
	problems    integer     NOT NULL,
	PRIMARY KEY (thing, every, at)
) WITH (fillfactor = 80); -- a slot's row is written a few times
CREATE INDEX vitals_sample_at ON vitals_sample (every, at);
