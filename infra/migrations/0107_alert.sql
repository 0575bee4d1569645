-- +goose Up
-- When many robots of one release have the same problem: one rule, and what it found.
CREATE TABLE alert_rule (
	single  boolean PRIMARY KEY DEFAULT true CHECK (single),
	robots  integer NOT NULL,
	share   double precision NOT NULL,
	changed timestamptz NOT NULL,
	by_whom text NOT NULL
);
CREATE TABLE alert_found (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	release  text NOT NULL, -- '': the robots name none
	kind     text NOT NULL,
	code     text NOT NULL,
	robots   integer NOT NULL, -- with the problem, when it was last looked at
	present  integer NOT NULL, -- of the release, then
	since    timestamptz NOT NULL,
	resolved timestamptz
);
CREATE UNIQUE INDEX alert_found_firing ON alert_found (release, kind, code) WHERE resolved IS NULL;
CREATE INDEX alert_found_resolved ON alert_found (resolved) WHERE resolved IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION webhook_on_alert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note(CASE WHEN NEW.resolved IS NULL THEN 'alert.firing' ELSE 'alert.resolved' END, '', coalesce(NEW.resolved, NEW.since),
		json_build_object('id', NEW.id, 'release', NEW.release, 'kind', NEW.kind, 'code', NEW.code, 'robots', NEW.robots, 'present', NEW.present));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_alert_firing AFTER INSERT ON alert_found FOR EACH ROW EXECUTE FUNCTION webhook_on_alert();
CREATE TRIGGER webhook_on_alert_resolved AFTER UPDATE ON alert_found FOR EACH ROW
	WHEN (OLD.resolved IS NULL AND NEW.resolved IS NOT NULL) EXECUTE FUNCTION webhook_on_alert();
