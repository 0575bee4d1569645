-- +goose Up
-- Refusals at the port of original robots that belong to no robot of the fleet. Bounded in number and age by its writer.
CREATE TABLE door_stranger (
	addr    text NOT NULL, -- of the peer, without its port; of IPv6 the /64
	step    text NOT NULL,
	code    text NOT NULL,
	claim   text NOT NULL, -- the robot that it says it is; '': none
	detail  text NOT NULL,
	version text NOT NULL,
	first   timestamptz NOT NULL,
	last    timestamptz NOT NULL,
	times   bigint NOT NULL,
	PRIMARY KEY (addr, step, code, claim)
);
CREATE INDEX door_stranger_last ON door_stranger (last);
