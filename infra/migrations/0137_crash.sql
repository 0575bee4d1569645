-- +goose Up
-- Crashes of robots' programs (cloud/crash): groups of crashes with the same cause, each crash, and the symbol files that put names to addresses.
CREATE TABLE crash_group (
	id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
	program    text        NOT NULL,
	signature  text        NOT NULL,
	state      text        NOT NULL DEFAULT 'open', -- open, resolved, regressed
	fixed_in   text        NOT NULL DEFAULT '', -- the version that resolves it; '': the one after those in resolved
	resolved   text[]      NOT NULL DEFAULT '{}', -- versions that had crashed when it was resolved
	note       text        NOT NULL DEFAULT '',
	changed    timestamptz, -- state or note, by a person
	by_whom    text        NOT NULL DEFAULT '',
	first_seen timestamptz NOT NULL,
	last_seen  timestamptz NOT NULL,
	versions   text[]      NOT NULL,
	crashes    bigint      NOT NULL DEFAULT 0, -- expired ones too
	moved      boolean     NOT NULL DEFAULT false, -- made of crashes of another group, whose addresses got names
	UNIQUE (program, signature)
);
CREATE INDEX crash_group_seen ON crash_group (last_seen DESC, id);

CREATE TABLE crash_crash (
	id        uuid        PRIMARY KEY, -- of the thing and the dump, so that a crash is stored once
	thing     text        NOT NULL,
	crashed   uuid        NOT NULL REFERENCES crash_group (id),
	name      text        NOT NULL,
	program   text        NOT NULL,
	os        text        NOT NULL,
	version   text        NOT NULL,
	boot_id   text        NOT NULL,
	at        timestamptz NOT NULL, -- by the robot's clock, or when it was received
	received  timestamptz NOT NULL,
	size      bigint      NOT NULL, -- bytes of the dump
	log_size  bigint      NOT NULL, -- bytes of the log; 0: none
	reason    text        NOT NULL,
	analysis  jsonb       NOT NULL,
	modules   text[]      NOT NULL, -- debug ids of the modules that the stacks need
	looked    timestamptz NOT NULL  -- when symbols were looked for
);
CREATE INDEX crash_crash_thing ON crash_crash (thing, at DESC, id DESC);
CREATE INDEX crash_crash_group ON crash_crash (crashed, received DESC, id DESC);
CREATE INDEX crash_crash_received ON crash_crash (received);
CREATE INDEX crash_crash_modules ON crash_crash USING gin (modules);

CREATE TABLE crash_symbols (
	debug_id text        PRIMARY KEY,
	module   text        NOT NULL,
	os       text        NOT NULL,
	cpu      text        NOT NULL,
	key      text        COLLATE "C" NOT NULL, -- of the object
	size     bigint      NOT NULL,
	functions bigint     NOT NULL,
	uploaded timestamptz NOT NULL,
	by_whom  text        NOT NULL
);
CREATE INDEX crash_symbols_uploaded ON crash_symbols (uploaded);

-- +goose StatementBegin
CREATE FUNCTION webhook_on_crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM webhook_note(CASE WHEN NEW.state = 'regressed' THEN 'crash.group.regressed' ELSE 'crash.group.new' END, '', NEW.last_seen,
		json_build_object('group', NEW.id, 'program', NEW.program, 'signature', NEW.signature, 'versions', NEW.versions, 'crashes', NEW.crashes));
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_on_crash_new AFTER INSERT ON crash_group FOR EACH ROW WHEN (NOT NEW.moved) EXECUTE FUNCTION webhook_on_crash();
CREATE TRIGGER webhook_on_crash_regressed AFTER UPDATE ON crash_group FOR EACH ROW
	WHEN (OLD.state = 'resolved' AND NEW.state = 'regressed') EXECUTE FUNCTION webhook_on_crash();
