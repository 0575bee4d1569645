-- +goose Up
-- Manufacturing batches whose factory certificates are accepted, each with the authorities that signed them.
CREATE TABLE certs_batch (
    name         text        PRIMARY KEY,
    bundle       text        NOT NULL, -- PEM
    species      text        NOT NULL,
    organization text        NOT NULL, -- the one O that its certificates have
    valid_after  timestamptz NOT NULL, -- they end later than this
    serial_from  text        NOT NULL DEFAULT '',
    serial_to    text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL,
    disabled_at  timestamptz,
    reason       text        NOT NULL DEFAULT '' -- why it was disabled
);

-- Single factory certificates that are not accepted any more.
CREATE TABLE certs_factory_revoked (
    certificate_id text        PRIMARY KEY, -- serial number, or SHA-256 of the certificate, hex
    reason         text        NOT NULL,
    revoked_at     timestamptz NOT NULL
);

-- Counts the changes of the two above and of revoked things, so that every process sees with one row that it must read them again.
CREATE TABLE certs_factory_change (
    one bool   PRIMARY KEY DEFAULT true CHECK (one),
    rev bigint NOT NULL
);
INSERT INTO certs_factory_change (rev) VALUES (1);
