-- +goose Up
-- The audit log becomes a chain: each line carries its place, without gaps, and SHA-256 over the hash of the line before and itself. The
-- database makes the links, so that every process, also one of the previous release, writes the same chain; account.VerifyAudit computes
-- them again, in other code.

-- Where the chain stands. Its one row is locked from a line's insert to its commit: that makes the order of the lines and leaves no gap.
CREATE TABLE account_audit_head (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq  bigint  NOT NULL,
    hash bytea   NOT NULL CHECK (octet_length(hash) = 32)
) WITH (fillfactor = 10);
INSERT INTO account_audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

-- Where lines came from. It is personal: it goes after a while, and with the person. The chain holds SHA-256 over salt and address, which
-- without the salt says nothing.
CREATE TABLE account_audit_addr (
    seq  bigint      PRIMARY KEY,
    at   timestamptz NOT NULL,
    salt bytea       NOT NULL CHECK (octet_length(salt) = 16),
    addr text        NOT NULL
);
CREATE INDEX account_audit_addr_at ON account_audit_addr (at);

ALTER TABLE account_audit ADD COLUMN seq bigint, ADD COLUMN addr_digest bytea, ADD COLUMN hash bytea;
CREATE INDEX account_audit_actor ON account_audit (actor);
CREATE INDEX account_audit_object ON account_audit (object);

-- +goose StatementBegin
CREATE FUNCTION account_audit_field(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int4send(octet_length(b)) || b
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION account_audit_link(prev bytea, seq bigint, at timestamptz, actor text, role text, action text, object text, detail text, digest bytea)
RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256(prev || int8send(seq) || int8send((extract(epoch FROM at) * 1000000)::bigint)
        || account_audit_field(convert_to(actor, 'UTF8')) || account_audit_field(convert_to(role, 'UTF8')) || account_audit_field(convert_to(action, 'UTF8'))
        || account_audit_field(convert_to(object, 'UTF8')) || account_audit_field(convert_to(detail, 'UTF8')) || account_audit_field(digest))
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION account_audit_chain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head account_audit_head;
    salt bytea := uuid_send(gen_random_uuid());
BEGIN
    SELECT * INTO STRICT head FROM account_audit_head FOR UPDATE;
    NEW.seq := head.seq + 1;
    NEW.addr_digest := ''::bytea;
    IF NEW.addr <> '' THEN
        NEW.addr_digest := sha256(salt || convert_to(NEW.addr, 'UTF8'));
        INSERT INTO account_audit_addr (seq, at, salt, addr) VALUES (NEW.seq, NEW.at, salt, NEW.addr);
        NEW.addr := '';
    END IF;
    NEW.hash := account_audit_link(head.hash, NEW.seq, NEW.at, NEW.actor, NEW.role, NEW.action, NEW.object, NEW.detail, NEW.addr_digest);
    UPDATE account_audit_head SET seq = NEW.seq, hash = NEW.hash;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- Lines from before, in the order of their ids.
-- +goose StatementBegin
DO $$
DECLARE
    line account_audit;
    head account_audit_head;
    salt bytea;
BEGIN
    ALTER TABLE account_audit DISABLE TRIGGER account_audit_append_only;
    SELECT * INTO STRICT head FROM account_audit_head FOR UPDATE;
    FOR line IN SELECT * FROM account_audit ORDER BY id LOOP
        head.seq := head.seq + 1;
        line.addr_digest := ''::bytea;
        IF line.addr <> '' THEN
            salt := uuid_send(gen_random_uuid());
            line.addr_digest := sha256(salt || convert_to(line.addr, 'UTF8'));
            INSERT INTO account_audit_addr (seq, at, salt, addr) VALUES (head.seq, line.at, salt, line.addr);
        END IF;
        head.hash := account_audit_link(head.hash, head.seq, line.at, line.actor, line.role, line.action, line.object, line.detail, line.addr_digest);
        UPDATE account_audit SET seq = head.seq, addr = '', addr_digest = line.addr_digest, hash = head.hash WHERE id = line.id;
    END LOOP;
    UPDATE account_audit_head SET seq = head.seq, hash = head.hash;
    ALTER TABLE account_audit ENABLE TRIGGER account_audit_append_only;
END $$;
-- +goose StatementEnd

ALTER TABLE account_audit ALTER COLUMN seq SET NOT NULL, ALTER COLUMN addr_digest SET NOT NULL, ALTER COLUMN hash SET NOT NULL,
    ADD CONSTRAINT account_audit_seq UNIQUE (seq);
CREATE TRIGGER account_audit_chain BEFORE INSERT ON account_audit FOR EACH ROW EXECUTE FUNCTION account_audit_chain();

-- Only a new line moves the head.
-- +goose StatementBegin
CREATE FUNCTION account_audit_head_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'account_audit_head moves with a new line only: % refused', TG_OP;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER account_audit_head_moves BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON account_audit_head
    FOR EACH STATEMENT EXECUTE FUNCTION account_audit_head_moves();
