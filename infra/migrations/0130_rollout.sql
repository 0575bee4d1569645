-- +goose Up
-- Releases that spread through a part of the fleet. What is decided and how far it is are documents; what is asked for by SQL is in columns.
CREATE TABLE rollout_rollout (
	id       uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	num      bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
	species  text NOT NULL,
	state    text NOT NULL,
	doc      jsonb NOT NULL,
	progress jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX rollout_rollout_species ON rollout_rollout (species, num DESC);

-- The robots that were granted a release at least once.
CREATE TABLE rollout_member (
	rollout uuid NOT NULL REFERENCES rollout_rollout (id) ON DELETE CASCADE,
	thing   text COLLATE "C" NOT NULL,
	state   text NOT NULL, -- '': it holds no grant
	was     text NOT NULL, -- what it ran when it was granted
	granted timestamptz NOT NULL,
	until   timestamptz NOT NULL,
	at      timestamptz NOT NULL,
	tries   integer NOT NULL,
	code    integer NOT NULL,
	phase   text NOT NULL,
	reason  text NOT NULL,
	PRIMARY KEY (rollout, thing)
) WITH (fillfactor = 80);
CREATE INDEX rollout_member_thing ON rollout_member (thing, rollout);
CREATE UNIQUE INDEX rollout_member_open ON rollout_member (thing) WHERE state IN ('granted', 'updating'); -- one update at once
CREATE INDEX rollout_member_places ON rollout_member (rollout) WHERE state IN ('granted', 'updating');

CREATE TABLE rollout_turn (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	rollout uuid NOT NULL REFERENCES rollout_rollout (id) ON DELETE CASCADE,
	at      timestamptz NOT NULL,
	kind    text NOT NULL,
	by_whom text NOT NULL,
	phase   integer NOT NULL,
	words   text NOT NULL
);
CREATE INDEX rollout_turn_rollout ON rollout_turn (rollout, id DESC);

-- +goose StatementBegin
CREATE FUNCTION webhook_on_rollout() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE d jsonb;
BEGIN
	SELECT doc INTO d FROM rollout_rollout WHERE id = NEW.rollout;
	PERFORM webhook_note(NEW.kind, '', NEW.at, json_build_object('rollout', NEW.rollout, 'species', d->>'species', 'version', d->>'version',
		'channel', d->>'channel', 'phase', NEW.phase + 1, 'by', NEW.by_whom, 'words', NEW.words));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_rollout AFTER INSERT ON rollout_turn FOR EACH ROW EXECUTE FUNCTION webhook_on_rollout();

-- The time zones in robots' settings, which maintenance windows and regions ask for. It follows the documents, so that it is gone with them.
CREATE TABLE rollout_zone (
	thing text COLLATE "C" PRIMARY KEY,
	zone  text NOT NULL
);
-- +goose StatementBegin
CREATE FUNCTION rollout_zone_of(doc text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT substring(doc FROM '"time_zone"\s*:\s*"([A-Za-z0-9/_+-]{1,64})"')
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION rollout_zone_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE zone_now text;
BEGIN
	IF TG_OP <> 'DELETE' AND NOT NEW.deleted THEN
		zone_now := rollout_zone_of(NEW.json_doc);
	END IF;
	IF zone_now IS NULL THEN
		DELETE FROM rollout_zone WHERE thing = coalesce(NEW.thing, OLD.thing);
	ELSE
		INSERT INTO rollout_zone (thing, zone) VALUES (NEW.thing, zone_now) ON CONFLICT (thing) DO UPDATE SET zone = excluded.zone WHERE rollout_zone.zone <> excluded.zone;
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
INSERT INTO rollout_zone (thing, zone) SELECT thing, rollout_zone_of(json_doc) FROM jdocs_doc
	WHERE thing <> '' AND name = 'vic.RobotSettings' AND NOT deleted AND rollout_zone_of(json_doc) IS NOT NULL ON CONFLICT DO NOTHING;
CREATE TRIGGER rollout_zone_made AFTER INSERT ON jdocs_doc FOR EACH ROW WHEN (NEW.thing <> '' AND NEW.name = 'vic.RobotSettings') EXECUTE FUNCTION rollout_zone_follow();
CREATE TRIGGER rollout_zone_changed AFTER UPDATE ON jdocs_doc FOR EACH ROW
	WHEN (NEW.thing <> '' AND NEW.name = 'vic.RobotSettings' AND NEW.json_doc <> OLD.json_doc) EXECUTE FUNCTION rollout_zone_follow();
CREATE TRIGGER rollout_zone_gone AFTER DELETE ON jdocs_doc FOR EACH ROW WHEN (OLD.thing <> '' AND OLD.name = 'vic.RobotSettings') EXECUTE FUNCTION rollout_zone_follow();

-- Where a release's archive is.
ALTER TABLE ota_release ADD COLUMN url text NOT NULL DEFAULT '', ADD COLUMN sha256 text NOT NULL DEFAULT '', ADD COLUMN size bigint NOT NULL DEFAULT 0;
