-- +goose Up
-- Programs elsewhere that want to be told what happens to things. Failures are counted in a row: while retry_at is ahead, nothing is sent.
CREATE TABLE webhook_hook (
	id            uuid PRIMARY KEY,
	url           text NOT NULL,
	kinds         text[] NOT NULL,
	filter        text NOT NULL,   -- of robots, in the language of the fleet's table; '': all
	secret        bytea NOT NULL,  -- sealed
	old_secret    bytea,           -- sealed; signs too until old_until
	old_until     timestamptz,
	note          text NOT NULL,
	by_whom       text NOT NULL,
	created       timestamptz NOT NULL,
	disabled      timestamptz,
	disabled_why  text NOT NULL DEFAULT '', -- '': an operator did it
	failures      integer NOT NULL DEFAULT 0,
	failing_since timestamptz,
	retry_at      timestamptz,
	last_ok       timestamptz,
	last_error    text NOT NULL DEFAULT ''
);

-- What happened and was not yet handed to the hooks: the outbox, written in the transaction of what happened by the triggers below.
CREATE TABLE webhook_event (
	seq   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id    uuid NOT NULL DEFAULT gen_random_uuid(),
	kind  text NOT NULL,
	thing text NOT NULL,
	at    timestamptz NOT NULL,
	data  json NOT NULL
);

-- What each hook gets. Of one hook and thing, one is sent only when those before it are done or dead.
CREATE TABLE webhook_delivery (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	hook       uuid NOT NULL REFERENCES webhook_hook (id) ON DELETE CASCADE,
	event      uuid NOT NULL, -- the receiver's key against duplicates: the same for each attempt and replay
	kind       text NOT NULL,
	thing      text NOT NULL,
	body       bytea NOT NULL, -- as it is sent
	created    timestamptz NOT NULL,
	state      text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'dead')),
	next_at    timestamptz NOT NULL,
	attempts   integer NOT NULL DEFAULT 0,
	last_at    timestamptz,
	status     integer NOT NULL DEFAULT 0, -- of HTTP; 0: no answer
	latency_us bigint NOT NULL DEFAULT 0,
	error      text NOT NULL DEFAULT ''
);
CREATE INDEX webhook_delivery_lane ON webhook_delivery (hook, thing, id) WHERE state = 'open';
CREATE INDEX webhook_delivery_due ON webhook_delivery (hook, next_at) WHERE state = 'open';
CREATE INDEX webhook_delivery_log ON webhook_delivery (hook, id DESC);
CREATE INDEX webhook_delivery_closed ON webhook_delivery (last_at) WHERE state <> 'open';

-- The triggers only read the new row and add one line, and only while some hook wants it: they cost other domains next to nothing and have
-- nothing to fail at (infra/adr/0013).
-- +goose StatementBegin
CREATE FUNCTION webhook_note(what text, whom text, at timestamptz, data json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM webhook_hook WHERE disabled IS NULL AND what = ANY (kinds)) THEN
		INSERT INTO webhook_event (kind, thing, at, data) VALUES (what, whom, at, data);
		PERFORM pg_notify('webhook_event', '');
	END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION webhook_on_presence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note(CASE WHEN NEW.present THEN 'thing.present' ELSE 'thing.absent' END, NEW.thing, NEW.at, '{}');
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_presence AFTER INSERT ON registry_presence FOR EACH ROW EXECUTE FUNCTION webhook_on_presence();

-- +goose StatementBegin
CREATE FUNCTION webhook_on_certificate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note('thing.activated', NEW.thing, NEW.issued_at, json_build_object('serial', NEW.serial, 'not_after', NEW.not_after));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_certificate AFTER INSERT ON certs_certificate FOR EACH ROW WHEN (NEW.method = 'enroll') EXECUTE FUNCTION webhook_on_certificate();

-- +goose StatementBegin
CREATE FUNCTION webhook_on_revocation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note('certificate.revoked', NEW.thing, NEW.revoked_at, json_build_object('serial', NEW.serial, 'reason', NEW.reason));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_revocation AFTER INSERT ON certs_revocation FOR EACH ROW WHEN (NEW.thing <> '') EXECUTE FUNCTION webhook_on_revocation();

-- +goose StatementBegin
CREATE FUNCTION webhook_on_command() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note('command.finished', NEW.thing, NEW.closed, json_build_object('id', NEW.id, 'kind', NEW.kind, 'state', NEW.state, 'status', NEW.status));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_command AFTER UPDATE OF closed ON command_outbox FOR EACH ROW
	WHEN (OLD.closed IS NULL AND NEW.closed IS NOT NULL) EXECUTE FUNCTION webhook_on_command();

-- Both texts, so that what they differ in can be named; the values stay here.
-- +goose StatementBegin
CREATE FUNCTION webhook_on_setting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note('setting.changed', NEW.thing, NEW.changed_at, json_build_object('doc', NEW.name, 'version', NEW.doc_version, 'by', NEW.changed_by,
		'old', CASE WHEN TG_OP = 'UPDATE' THEN OLD.json_doc ELSE '' END, 'new', NEW.json_doc));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_setting_made AFTER INSERT ON jdocs_doc FOR EACH ROW
	WHEN (NEW.thing <> '' AND NEW.name LIKE '%.RobotSettings') EXECUTE FUNCTION webhook_on_setting();
CREATE TRIGGER webhook_on_setting_changed AFTER UPDATE ON jdocs_doc FOR EACH ROW
	WHEN (NEW.thing <> '' AND NEW.name LIKE '%.RobotSettings' AND NEW.doc_version <> OLD.doc_version) EXECUTE FUNCTION webhook_on_setting();
