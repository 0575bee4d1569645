-- +goose Up
-- What the fleet is searched, filtered, sorted and counted by, apart from registry_thing: that one is written at each status, and every
-- index would be written with it; this one only when something in it changes.
CREATE EXTENSION IF NOT EXISTS pg_trgm; -- of Postgres' own, trusted: the owner of a database may

CREATE TABLE registry_facet (
	thing     text COLLATE "C" PRIMARY KEY,
	species   text COLLATE "C" NOT NULL GENERATED ALWAYS AS (split_part(thing, ':', 1)) STORED,
	created   timestamptz NOT NULL,
	present   boolean NOT NULL DEFAULT false,
	since     timestamptz NOT NULL DEFAULT '-infinity',
	seen      timestamptz NOT NULL DEFAULT '-infinity', -- infinity: present, it is seen now
	-- What it last said of itself, as Go's registry.FacetsOf reads it; fit is the number of that rule, 0 not read yet.
	fit       smallint NOT NULL DEFAULT 0,
	os        text COLLATE "C" NOT NULL DEFAULT '',
	os_key    text COLLATE "C" NOT NULL DEFAULT '', -- sorts as versions do (filter.VersionKey)
	agent     text COLLATE "C" NOT NULL DEFAULT '',
	agent_key text COLLATE "C" NOT NULL DEFAULT '',
	body      text COLLATE "C" NOT NULL DEFAULT '',
	body_key  text COLLATE "C" NOT NULL DEFAULT '',
	model     text COLLATE "C" NOT NULL DEFAULT '',
	volts     double precision NOT NULL DEFAULT 0, -- 0: unknown
	level     text COLLATE "C" NOT NULL DEFAULT '',
	late      double precision NOT NULL DEFAULT -1, -- p99 in microseconds; -1: no loop
	loop      text COLLATE "C" NOT NULL DEFAULT 'none',
	problems  text[] COLLATE "C" NOT NULL DEFAULT '{}', -- kinds
	ills      integer NOT NULL GENERATED ALWAYS AS (cardinality(problems)) STORED,
	-- What others say of it.
	tags      text[] COLLATE "C" NOT NULL DEFAULT '{}',
	cert      timestamptz NOT NULL DEFAULT '-infinity' -- end of its certificate; -infinity: none
) WITH (fillfactor = 80);

-- One for each column that the table may be sorted by; the thing makes the order whole.
CREATE INDEX registry_facet_created ON registry_facet (created, thing);
CREATE INDEX registry_facet_present ON registry_facet (present, thing);
CREATE INDEX registry_facet_since ON registry_facet (since, thing);
CREATE INDEX registry_facet_seen ON registry_facet (seen, thing);
CREATE INDEX registry_facet_os ON registry_facet (os_key, thing);
CREATE INDEX registry_facet_agent ON registry_facet (agent_key, thing);
CREATE INDEX registry_facet_body ON registry_facet (body_key, thing);
CREATE INDEX registry_facet_volts ON registry_facet (volts, thing);
CREATE INDEX registry_facet_late ON registry_facet (late, thing);
CREATE INDEX registry_facet_ills ON registry_facet (ills, thing);
CREATE INDEX registry_facet_cert ON registry_facet (cert, thing);
CREATE INDEX registry_facet_tags ON registry_facet USING gin (tags) WHERE tags <> '{}';
CREATE INDEX registry_facet_problems ON registry_facet USING gin (problems) WHERE problems <> '{}';

-- The text that words are looked for in. A table of its own: its index is dear, and presence does not change it.
CREATE TABLE registry_words (
	thing text COLLATE "C" PRIMARY KEY,
	words text COLLATE "C" NOT NULL
);
CREATE INDEX registry_words_words ON registry_words USING gin (words gin_trgm_ops);

-- +goose StatementBegin
CREATE FUNCTION registry_words_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO registry_words AS w (thing, words)
	VALUES (NEW.thing, lower(concat_ws(E'\n', NEW.thing, NEW.os, NEW.agent, NEW.body, NEW.model, array_to_string(NEW.tags, E'\n'))))
	ON CONFLICT (thing) DO UPDATE SET words = excluded.words;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER registry_words_new AFTER INSERT ON registry_facet FOR EACH ROW EXECUTE FUNCTION registry_words_follow();
CREATE TRIGGER registry_words_follow AFTER UPDATE ON registry_facet FOR EACH ROW
	WHEN ((OLD.os, OLD.agent, OLD.body, OLD.model, OLD.tags) IS DISTINCT FROM (NEW.os, NEW.agent, NEW.body, NEW.model, NEW.tags))
	EXECUTE FUNCTION registry_words_follow();

-- Presence follows registry_thing here, not in Go, so that a process of the previous release keeps it right too.
-- +goose StatementBegin
CREATE FUNCTION registry_facet_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO registry_facet AS f (thing, created, present, since, seen)
	VALUES (NEW.thing, NEW.created, NEW.present, coalesce(NEW.since, '-infinity'),
		CASE WHEN NEW.present THEN 'infinity' ELSE coalesce(NEW.last_seen, '-infinity') END)
	ON CONFLICT (thing) DO UPDATE SET present = excluded.present, since = excluded.since, seen = excluded.seen;
	RETURN NULL;
END $$;
-- +goose StatementEnd
INSERT INTO registry_facet (thing, created, present, since, seen)
	SELECT thing, created, present, coalesce(since, '-infinity'), CASE WHEN present THEN 'infinity' ELSE coalesce(last_seen, '-infinity') END
	FROM registry_thing;
CREATE TRIGGER registry_facet_new AFTER INSERT ON registry_thing FOR EACH ROW EXECUTE FUNCTION registry_facet_follow();
CREATE TRIGGER registry_facet_follow AFTER UPDATE ON registry_thing FOR EACH ROW
	WHEN (OLD.present IS DISTINCT FROM NEW.present OR OLD.since IS DISTINCT FROM NEW.since
		OR (NOT NEW.present AND OLD.last_seen IS DISTINCT FROM NEW.last_seen))
	EXECUTE FUNCTION registry_facet_follow();
