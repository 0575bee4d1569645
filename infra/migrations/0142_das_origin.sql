-- +goose Up
-- By what it is believed whose the events of a boot are (cloud/das): '' a device certificate, 'signed', 'unsigned'.
ALTER TABLE das_range ADD COLUMN origin text NOT NULL DEFAULT '';
-- The bytes of events that robots sent by HTTP, of each robot's latest day (cloud/intake); as sts_usage.
CREATE TABLE intake_usage (
	thing text   PRIMARY KEY,
	day   date   NOT NULL,
	bytes bigint NOT NULL
);
