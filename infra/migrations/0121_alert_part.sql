-- +goose Up
-- Parts of the cloud that do not work, or soon will not: a full volume, a silent broker. A table of its own, because earlier releases resolve what they do not know in alert_found.
CREATE TABLE alert_part (
	id       bigint PRIMARY KEY DEFAULT nextval(pg_get_serial_sequence('alert_found', 'id')), -- one number names one alert of either table
	place    text NOT NULL, -- the process that tells
	part     text NOT NULL,
	failing  boolean NOT NULL, -- false: a warning
	reason   text NOT NULL,
	since    timestamptz NOT NULL,
	told     timestamptz NOT NULL, -- when the process told it last
	resolved timestamptz
);
CREATE UNIQUE INDEX alert_part_firing ON alert_part (place, part) WHERE resolved IS NULL;
CREATE INDEX alert_part_resolved ON alert_part (resolved) WHERE resolved IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION webhook_on_alert_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note(CASE WHEN NEW.resolved IS NULL THEN 'alert.firing' ELSE 'alert.resolved' END, '', coalesce(NEW.resolved, NEW.told),
		json_build_object('id', NEW.id, 'release', '', 'kind', CASE WHEN NEW.failing THEN 'part_failing' ELSE 'part_warning' END, 'code', NEW.part,
			'robots', 0, 'present', 0, 'place', NEW.place, 'reason', NEW.reason));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_alert_part_firing AFTER INSERT ON alert_part FOR EACH ROW EXECUTE FUNCTION webhook_on_alert_part();
CREATE TRIGGER webhook_on_alert_part_changed AFTER UPDATE ON alert_part FOR EACH ROW
	WHEN (OLD.resolved IS NULL AND NEW.resolved IS NOT NULL OR NEW.failing AND NOT OLD.failing) EXECUTE FUNCTION webhook_on_alert_part();
