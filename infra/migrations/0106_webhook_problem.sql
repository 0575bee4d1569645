-- +goose Up
-- Webhooks hear of problems as kind and code. A first reading by a newer rule (fit) is no news, except the first status of all (fit 0).
-- +goose StatementBegin
CREATE FUNCTION webhook_on_problem() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	token text;
	data  json;
BEGIN
	FOR token IN SELECT unnest(NEW.codes) EXCEPT SELECT unnest(OLD.codes) ORDER BY 1 LOOP
		data := json_build_object('kind', split_part(token, '/', 1), 'code', split_part(token, '/', 2));
		PERFORM webhook_note('problem.raised', NEW.thing, clock_timestamp(), data);
		IF token LIKE 'fault/%' THEN
			PERFORM webhook_note('fault.raised', NEW.thing, clock_timestamp(), json_build_object('code', split_part(token, '/', 2)));
		END IF;
	END LOOP;
	FOR token IN SELECT unnest(OLD.codes) EXCEPT SELECT unnest(NEW.codes) ORDER BY 1 LOOP
		PERFORM webhook_note('problem.gone', NEW.thing, clock_timestamp(), json_build_object('kind', split_part(token, '/', 1), 'code', split_part(token, '/', 2)));
	END LOOP;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_problem AFTER UPDATE ON registry_facet FOR EACH ROW
	WHEN (OLD.codes IS DISTINCT FROM NEW.codes AND (OLD.fit = 0 OR OLD.fit = NEW.fit)) EXECUTE FUNCTION webhook_on_problem();

-- A robot's events, by the beginning of their names: one look for each transaction that stores events, and none at the events themselves
-- while no hook wants any. Their texts stay here: some say where a person lives.
-- +goose StatementBegin
CREATE FUNCTION webhook_on_events() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wanted text[];
BEGIN
	SELECT array_agg(DISTINCT substr(kind, 7)) INTO wanted FROM webhook_hook, unnest(kinds) AS kind WHERE disabled IS NULL AND kind LIKE 'event:%';
	IF wanted IS NULL THEN
		RETURN NULL;
	END IF;
	INSERT INTO webhook_event (kind, thing, at, data)
	SELECT 'event:' || e.event, e.thing, e.received, json_build_object('event', e.event, 'level', e.level, 'source', e.source, 'boot_id', e.boot_id, 'seq', e.seq,
		'ts', e.ts, 'i1', e.i1, 'i2', e.i2, 'i3', e.i3, 'i4', e.i4)
	FROM das_event AS e
	WHERE e.received = NEW.received AND e.grp = NEW.id AND EXISTS (SELECT FROM unnest(wanted) AS w WHERE starts_with(e.event, w))
	ORDER BY e.thing, e.boot_id, e.seq;
	IF FOUND THEN
		PERFORM pg_notify('webhook_event', '');
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_events AFTER INSERT ON das_group FOR EACH ROW WHEN (NEW.events > 0) EXECUTE FUNCTION webhook_on_events();
