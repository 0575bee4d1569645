-- +goose Up
-- Recent crashes of a robot's programs as problems of the robot: a robot has the problem crash, with the release as code, for six hours (registry.CrashedFor) after the
-- cloud received the crash. The triggers keep processes of the previous release right too.
ALTER TABLE registry_facet ADD COLUMN crashes jsonb NOT NULL DEFAULT '[]'; -- []registry.Crashed, the newest first
CREATE INDEX registry_facet_crashes ON registry_facet (thing) WHERE crashes <> '[]';

-- registry_crash_code returns the problem's token for a release, as registry.CrashToken does.
-- +goose StatementBegin
CREATE FUNCTION registry_crash_code(release text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT rtrim('crash/' || regexp_replace(lower(left(release, 40)), '[^a-z0-9._-]', '-', 'g'), '/')
$$;
CREATE FUNCTION registry_crash_codes(codes text[], crashes jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
	SELECT ARRAY(SELECT code FROM unnest(codes) AS code WHERE split_part(code, '/', 1) <> 'crash'
		UNION SELECT registry_crash_code(c ->> 'release') FROM jsonb_array_elements(crashes) AS c ORDER BY 1)
$$;
CREATE FUNCTION registry_crash_kinds(kinds text[], crashes jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
	SELECT ARRAY(SELECT kind FROM unnest(kinds) AS kind WHERE kind <> 'crash' UNION SELECT 'crash' WHERE crashes <> '[]' ORDER BY 1)
$$;
CREATE FUNCTION registry_facet_crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.codes := registry_crash_codes(NEW.codes, NEW.crashes);
	NEW.problems := registry_crash_kinds(NEW.problems, NEW.crashes);
	RETURN NEW;
END $$;
-- registry_recount brings the crashes of things in step with crash_crash, and tells watchers of those that changed.
CREATE FUNCTION registry_recount(things text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	told text[];
BEGIN
	PERFORM FROM registry_thing AS t WHERE t.thing = ANY (things) ORDER BY t.thing FOR UPDATE; -- locked before registry_facet, here as elsewhere
	WITH gone AS (
		UPDATE registry_facet AS f SET crashes = n.crashes
		FROM unnest(things) AS q (thing) CROSS JOIN LATERAL (
			SELECT coalesce(jsonb_agg(jsonb_build_object('release', release, 'program', program, 'count', n, 'newest', newest, 'group', crashed) ORDER BY newest DESC), '[]') AS crashes
			FROM (SELECT CASE WHEN c.os <> '' THEN c.os ELSE c.version END AS release, c.program, count(*) AS n, max(c.received) AS newest, (array_agg(c.crashed ORDER BY c.received DESC))[1] AS crashed
				FROM crash_crash AS c WHERE c.thing = q.thing AND c.received >= clock_timestamp() - interval '6 hours' GROUP BY 1, 2 ORDER BY newest DESC LIMIT 8) AS recent) AS n
		WHERE f.thing = q.thing AND f.crashes <> n.crashes
		RETURNING f.thing)
	SELECT array_agg(thing) INTO told FROM gone;
	IF told IS NOT NULL THEN
		UPDATE registry_thing SET rev = rev + 1, changed = clock_timestamp() WHERE thing = ANY (told);
		PERFORM pg_notify('registry_changed', '');
	END IF;
	RETURN coalesce(cardinality(told), 0);
END $$;
CREATE FUNCTION registry_on_crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM registry_recount(ARRAY(SELECT DISTINCT thing FROM crashes WHERE received >= clock_timestamp() - interval '6 hours'));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER registry_facet_crash BEFORE UPDATE ON registry_facet FOR EACH ROW WHEN (OLD.crashes <> '[]' OR NEW.crashes <> '[]') EXECUTE FUNCTION registry_facet_crash();
CREATE TRIGGER registry_on_crash AFTER INSERT ON crash_crash REFERENCING NEW TABLE AS crashes FOR EACH STATEMENT EXECUTE FUNCTION registry_on_crash();
CREATE TRIGGER registry_on_crash_moved AFTER UPDATE ON crash_crash REFERENCING NEW TABLE AS crashes FOR EACH STATEMENT EXECUTE FUNCTION registry_on_crash();
CREATE TRIGGER registry_on_crash_gone AFTER DELETE ON crash_crash REFERENCING OLD TABLE AS crashes FOR EACH STATEMENT EXECUTE FUNCTION registry_on_crash();

SELECT registry_recount(ARRAY(SELECT DISTINCT thing FROM crash_crash WHERE received >= clock_timestamp() - interval '6 hours'));
