-- +goose Up
-- An alert that resolves and fires again within a time is the same alert; letters grow with a problem; alerts are acknowledged and silenced.
ALTER TABLE alert_found ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE alert_found ADD COLUMN told_size integer NOT NULL DEFAULT 0; -- of the alert in its last letter: robots; of a part 1, or 10 if it fails
ALTER TABLE alert_part ADD COLUMN told_size integer NOT NULL DEFAULT 0;
ALTER TABLE alert_crossed ADD COLUMN told_size integer NOT NULL DEFAULT 0;
ALTER TABLE alert_crossed ADD COLUMN heard timestamptz NOT NULL DEFAULT clock_timestamp(); -- when there last were data of its release
UPDATE alert_found SET told_size = robots WHERE mailed > 0;
UPDATE alert_part SET told_size = CASE WHEN failing THEN 10 ELSE 1 END WHERE mailed > 0;
UPDATE alert_crossed SET told_size = robots WHERE mailed > 0;

CREATE TABLE alert_ack (
	id      bigint PRIMARY KEY, -- of the alert
	at      timestamptz NOT NULL,
	by_whom text NOT NULL,
	why     text NOT NULL,
	size    integer NOT NULL -- of the alert then
);
CREATE TABLE alert_silence (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	release text NOT NULL, -- what alerts it is about
	place   text NOT NULL,
	kind    text NOT NULL, -- part: a part of the cloud
	code    text NOT NULL,
	since   timestamptz NOT NULL,
	until   timestamptz NOT NULL,
	by_whom text NOT NULL,
	why     text NOT NULL
);
CREATE INDEX alert_silence_until ON alert_silence (until);

-- How many robots of a species went offline in the hour before a time, every ten minutes: what is usual at an hour of the day.
CREATE TABLE alert_gone (
	species text NOT NULL,
	at      timestamptz NOT NULL,
	gone    integer NOT NULL,
	base    integer NOT NULL, -- these, and those that were present
	PRIMARY KEY (species, at)
);

ALTER TABLE alert_rule ADD COLUMN floor_robots integer NOT NULL DEFAULT 10;
ALTER TABLE alert_rule ADD COLUMN floor_share double precision NOT NULL DEFAULT 0.01;
ALTER TABLE alert_rule ADD COLUMN excess double precision NOT NULL DEFAULT 0.02;

CREATE TRIGGER webhook_on_alert_again AFTER UPDATE ON alert_found FOR EACH ROW WHEN (OLD.resolved IS NOT NULL AND NEW.resolved IS NULL) EXECUTE FUNCTION webhook_on_alert();
CREATE TRIGGER webhook_on_alert_part_again AFTER UPDATE ON alert_part FOR EACH ROW WHEN (OLD.resolved IS NOT NULL AND NEW.resolved IS NULL) EXECUTE FUNCTION webhook_on_alert_part();
CREATE TRIGGER webhook_on_alert_crossed_again AFTER UPDATE ON alert_crossed FOR EACH ROW WHEN (OLD.resolved IS NOT NULL AND NEW.resolved IS NULL) EXECUTE FUNCTION webhook_on_alert_crossed();
