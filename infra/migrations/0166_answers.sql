-- +goose Up
-- Whether the owner of a robot lets a language model answer for it, how the owner wants it to be, and whether it remembers. It ends with the ownership.
CREATE TABLE answers_talk (
	thing    text PRIMARY KEY,
	owner    text NOT NULL,       -- the account that chose this
	since    timestamptz NOT NULL,
	asks     boolean NOT NULL,    -- the language model may be asked
	persona  text NOT NULL,
	remember boolean NOT NULL
);

-- What a robot remembers of talks. It ends with the choice to remember.
CREATE TABLE answers_turn (
	id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	thing text NOT NULL REFERENCES answers_talk ON DELETE CASCADE,
	at    timestamptz NOT NULL,
	asked text NOT NULL,
	said  text NOT NULL
);
CREATE INDEX answers_turn_thing ON answers_turn (thing, id);
