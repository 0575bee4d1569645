-- +goose Up
-- Intents that operators add to those of the original robots.
CREATE TABLE intent_custom (
	id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	thing     text   NOT NULL, -- '': of the whole fleet
	name      text   NOT NULL,
	phrases   text[] NOT NULL,
	languages text[] NOT NULL, -- none: all
	reaction  text   NOT NULL, -- a user intent; '': the usual one
	overrides text[] NOT NULL, -- user intents whose sentences it may take
	created   timestamptz NOT NULL,
	by_whom   text   NOT NULL,
	CONSTRAINT intent_custom_name UNIQUE (thing, name)
);
