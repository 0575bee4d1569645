-- +goose Up
-- How the bodies of robots are made, with the motions that they know, as robots describe them: many robots have the same.
CREATE TABLE motion_body (
	sum  text PRIMARY KEY, -- SHA-256 of body
	body text NOT NULL
);

-- Which robot has which body.
CREATE TABLE motion_robot (
	thing text PRIMARY KEY,
	sum   text NOT NULL REFERENCES motion_body,
	since timestamptz NOT NULL DEFAULT now()
);

-- Motions that people uploaded for a robot. They end with the ownership in which they were uploaded.
CREATE TABLE motion_file (
	thing    text NOT NULL,
	name     text NOT NULL,
	uploaded timestamptz NOT NULL DEFAULT now(),
	sha256   text NOT NULL,
	file     bytea NOT NULL,
	judged   boolean NOT NULL DEFAULT false, -- there is a verdict of the robot's body
	kept     boolean NOT NULL DEFAULT false,
	verdict  text NOT NULL DEFAULT '',       -- JSON (infra/api/motionwire.Verdict), without the file
	made     bytea,                          -- in the format of the body's own motion files
	PRIMARY KEY (thing, name)
);
