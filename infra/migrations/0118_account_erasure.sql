-- +goose Up
-- A deletion has a name of its own, so that neither the queue of tasks nor the audit log needs the account's id. The link between the two goes
-- with the account.
ALTER TABLE account_deletion ADD COLUMN ref uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE;

-- What was erased of people who left. Nothing here says who they were.
CREATE TABLE account_erasure (
    ref          uuid        PRIMARY KEY, -- stands for the person in the audit log
    asked_by     text        NOT NULL CHECK (asked_by IN ('owner', 'administrator')),
    requested_at timestamptz NOT NULL,
    finished_at  timestamptz,             -- null: under way
    erased       jsonb       NOT NULL DEFAULT '{}' -- how much of each kind; 0: what that domain does not count
);
CREATE INDEX account_erasure_requested ON account_erasure (requested_at);

-- Erasing a person in the audit log: the person's id gives way to the ref in lines that stay. A line keeps its hash, which all later lines build
-- on, and gets a digest of its new words here; the line by_seq, which is in the chain as every other, attests these digests together. So the chain
-- still shows every change that no erasure attests.
ALTER TABLE account_audit ADD COLUMN erased boolean NOT NULL DEFAULT false;
CREATE TABLE account_audit_erased (
    by_seq bigint NOT NULL, -- of the line with action audit.erased
    seq    bigint NOT NULL,
    digest bytea  NOT NULL CHECK (octet_length(digest) = 32), -- account_audit_link of the new words, after 32 zero bytes
    PRIMARY KEY (by_seq, seq)
);
CREATE INDEX account_audit_erased_seq ON account_audit_erased (seq, by_seq);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION account_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR TG_TABLE_NAME <> 'account_audit' OR current_setting('kennel.audit_erases', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER account_audit_erased_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON account_audit_erased
    FOR EACH STATEMENT EXECUTE FUNCTION account_audit_append_only();

-- +goose StatementBegin
CREATE FUNCTION account_audit_erases_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT NEW.erased OR (NEW.id, NEW.seq, NEW.at, NEW.role, NEW.addr, NEW.action, NEW.addr_digest, NEW.hash)
        IS DISTINCT FROM (OLD.id, OLD.seq, OLD.at, OLD.role, OLD.addr, OLD.action, OLD.addr_digest, OLD.hash) THEN
        RAISE EXCEPTION 'account_audit is append-only: an erasure changes actor, object and detail alone; line % refused', OLD.seq;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER account_audit_erases_words BEFORE UPDATE ON account_audit FOR EACH ROW EXECUTE FUNCTION account_audit_erases_words();
