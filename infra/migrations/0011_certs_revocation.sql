-- +goose Up
-- What was revoked, in the order in which it took effect: the feed that every process follows. Whatever marks a row of certs_certificate
-- writes here by the trigger below; a certificate that is not in the inventory (a factory's) is revoked by a row of its own.
CREATE TABLE certs_revocation (
    seq        bigint      PRIMARY KEY,
    serial     text        NOT NULL, -- of one of our certificates, hex; '': every certificate of the key
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    thing      text        NOT NULL,
    not_after  timestamptz NOT NULL, -- afterwards the certificate is refused because it ended
    revoked_at timestamptz NOT NULL,
    reason     text        NOT NULL
);
CREATE INDEX certs_revocation_thing ON certs_revocation (thing);
CREATE INDEX certs_certificate_in_force ON certs_certificate (thing, not_after) WHERE revoked_at IS NULL;
CREATE SEQUENCE certs_revocation_seq;
CREATE SEQUENCE certs_crl_number;

-- A reader that has seen number n has seen everything before n: the lock is held until commit, so numbers appear in their order.
-- +goose StatementBegin
CREATE FUNCTION certs_revocation_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('certs_revocation', 0));
    NEW.seq := nextval('certs_revocation_seq');
    PERFORM pg_notify('certs_revoked', '');
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER certs_revocation_number BEFORE INSERT ON certs_revocation FOR EACH ROW EXECUTE FUNCTION certs_revocation_number();

-- +goose StatementBegin
CREATE FUNCTION certs_certificate_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO certs_revocation (serial, key, thing, not_after, revoked_at, reason)
    VALUES (NEW.serial, NEW.key, NEW.thing, NEW.not_after, NEW.revoked_at, NEW.reason);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER certs_certificate_revoked AFTER UPDATE OF revoked_at ON certs_certificate FOR EACH ROW
    WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL AND NEW.not_after > now()) EXECUTE FUNCTION certs_certificate_revoked();

INSERT INTO certs_revocation (serial, key, thing, not_after, revoked_at, reason)
SELECT serial, key, thing, not_after, revoked_at, reason FROM certs_certificate
WHERE revoked_at IS NOT NULL AND not_after > now() ORDER BY revoked_at, serial;
