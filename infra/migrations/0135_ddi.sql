-- +goose Up
-- Devices that take their releases by hawkBit's device API (cloud/ddi): their secret, and the one action that each has.
CREATE TABLE ddi_device (
	thing      text PRIMARY KEY,
	rev        bigint NOT NULL DEFAULT 0, -- raised by every change but that of the token
	token      bytea,                     -- SHA-256; null: none
	action     integer NOT NULL DEFAULT 0,
	release    text NOT NULL DEFAULT '',  -- that the action is about
	since      timestamptz,               -- of the wish for it
	state      text NOT NULL DEFAULT '',
	terms      jsonb NOT NULL DEFAULT '{}', -- of the wish
	said       text NOT NULL DEFAULT '', -- errors before the end of the action
	running    text NOT NULL DEFAULT '',
	attributes jsonb NOT NULL DEFAULT '{}', -- as the device says them
	told       boolean NOT NULL DEFAULT false -- it said them since its last action ended
);
