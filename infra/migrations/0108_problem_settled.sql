-- +goose Up
-- Problems that come and go by the second: a webhook hears at once that a problem is there, and that it is gone only when it has been away for
-- webhook.GoneAfter; one that comes back before is the same. An alert is resolved when its rule has not held for alert.ResolveAfter.
CREATE TABLE webhook_problem (
	thing text        NOT NULL,
	code  text        NOT NULL COLLATE "C", -- kind/code, or the kind alone
	gone  timestamptz,                      -- NULL: it is there
	PRIMARY KEY (thing, code)
);
CREATE INDEX webhook_problem_gone ON webhook_problem (gone) WHERE gone IS NOT NULL;

-- registry_distinct returns the problems among codes, each once: a numbered fault that is told under another kind too is one problem.
-- +goose StatementBegin
CREATE FUNCTION registry_distinct(codes text[]) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
	SELECT code FROM unnest(codes) AS code
	WHERE split_part(code, '/', 1) = 'fault' OR split_part(code, '/', 2) = '' OR 'fault/' || split_part(code, '/', 2) <> ALL (codes)
$$;
-- +goose StatementEnd

INSERT INTO webhook_problem (thing, code) SELECT DISTINCT thing, code FROM registry_facet, registry_distinct(codes) AS code;

-- A first reading by a newer rule (fit) is no news, except the first status of all (fit 0).
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION webhook_on_problem() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	news  boolean := OLD.fit = 0 OR OLD.fit = NEW.fit;
	token text;
BEGIN
	FOR token IN SELECT registry_distinct(NEW.codes) EXCEPT SELECT registry_distinct(OLD.codes) ORDER BY 1 LOOP
		UPDATE webhook_problem SET gone = NULL WHERE thing = NEW.thing AND code = token;
		CONTINUE WHEN FOUND;
		INSERT INTO webhook_problem (thing, code) VALUES (NEW.thing, token);
		CONTINUE WHEN NOT news;
		PERFORM webhook_note('problem.raised', NEW.thing, clock_timestamp(),
			json_build_object('kind', split_part(token, '/', 1), 'code', split_part(token, '/', 2)));
		IF token LIKE 'fault/%' THEN
			PERFORM webhook_note('fault.raised', NEW.thing, clock_timestamp(), json_build_object('code', split_part(token, '/', 2)));
		END IF;
	END LOOP;
	FOR token IN SELECT registry_distinct(OLD.codes) EXCEPT SELECT registry_distinct(NEW.codes) LOOP
		IF news THEN
			UPDATE webhook_problem SET gone = clock_timestamp() WHERE thing = NEW.thing AND code = token;
		ELSE
			DELETE FROM webhook_problem WHERE thing = NEW.thing AND code = token;
		END IF;
	END LOOP;
	RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER webhook_on_problem ON registry_facet;
CREATE TRIGGER webhook_on_problem AFTER UPDATE ON registry_facet FOR EACH ROW
	WHEN (OLD.codes IS DISTINCT FROM NEW.codes) EXECUTE FUNCTION webhook_on_problem();

ALTER TABLE alert_found ADD COLUMN missed timestamptz; -- since then the rule does not hold; NULL: it holds
