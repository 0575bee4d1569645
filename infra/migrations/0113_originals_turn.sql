-- +goose Up
-- The self-test of original robots plays one robot, so there is one at a time (package originals).
CREATE TABLE originals_turn (
	one  boolean PRIMARY KEY DEFAULT true CHECK (one),
	ends timestamptz NOT NULL -- after which the next one may begin, whatever became of this one
);
