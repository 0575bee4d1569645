-- +goose Up
-- Limits on shares of robots and rates of events, what crossed them, and who gets letters about alerts of any kind.
CREATE TABLE alert_threshold (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind    text NOT NULL,
	of      text NOT NULL, -- a fault code, or the name of an event
	level   double precision NOT NULL,
	robots  integer NOT NULL,
	hours   integer NOT NULL,
	changed timestamptz NOT NULL,
	by_whom text NOT NULL -- '': it was there from the beginning
);
INSERT INTO alert_threshold (kind, of, level, robots, hours, changed, by_whom) VALUES ('crash_share', '', 0.02, 3, 24, clock_timestamp(), '');
CREATE TABLE alert_mail (address text PRIMARY KEY);

-- A table of its own, because earlier releases resolve what they do not know in alert_found.
CREATE TABLE alert_crossed (
	id        bigint PRIMARY KEY DEFAULT nextval(pg_get_serial_sequence('alert_found', 'id')), -- one number names one alert of any table
	threshold bigint NOT NULL,
	release   text NOT NULL,
	kind      text NOT NULL,
	code      text NOT NULL,
	robots    integer NOT NULL,
	present   integer NOT NULL,
	reason    text NOT NULL,
	since     timestamptz NOT NULL,
	missed    timestamptz,
	resolved  timestamptz,
	mailed    integer NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX alert_crossed_firing ON alert_crossed (threshold, release, code) WHERE resolved IS NULL;
CREATE INDEX alert_crossed_resolved ON alert_crossed (resolved) WHERE resolved IS NOT NULL;

-- 0: nobody was told by letter; 1: that it fires; 2: that it is resolved. Those that are there already are told of.
ALTER TABLE alert_found ADD COLUMN mailed integer NOT NULL DEFAULT 2;
ALTER TABLE alert_found ALTER COLUMN mailed SET DEFAULT 0;
ALTER TABLE alert_part ADD COLUMN mailed integer NOT NULL DEFAULT 2;
ALTER TABLE alert_part ALTER COLUMN mailed SET DEFAULT 0;

-- +goose StatementBegin
CREATE FUNCTION webhook_on_alert_crossed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note(CASE WHEN NEW.resolved IS NULL THEN 'alert.firing' ELSE 'alert.resolved' END, '', coalesce(NEW.resolved, NEW.since),
		json_build_object('id', NEW.id, 'release', NEW.release, 'kind', NEW.kind, 'code', NEW.code, 'robots', NEW.robots, 'present', NEW.present, 'reason', NEW.reason));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_alert_crossed_firing AFTER INSERT ON alert_crossed FOR EACH ROW EXECUTE FUNCTION webhook_on_alert_crossed();
CREATE TRIGGER webhook_on_alert_crossed_resolved AFTER UPDATE ON alert_crossed FOR EACH ROW
	WHEN (OLD.resolved IS NULL AND NEW.resolved IS NOT NULL) EXECUTE FUNCTION webhook_on_alert_crossed();
