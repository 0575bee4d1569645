-- +goose Up
-- A thing's claim: the hash of its claim secret, and the key that was bound at the secret's first use.
CREATE TABLE certs_claim (
    thing         text        PRIMARY KEY,
    secret_hash   bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
    key           bytea       CHECK (octet_length(key) = 32), -- SHA-256 of SubjectPublicKeyInfo
    registered_at timestamptz NOT NULL,
    bound_at      timestamptz
);
CREATE UNIQUE INDEX certs_claim_secret ON certs_claim (secret_hash);

-- Every device certificate ever issued.
CREATE TABLE certs_certificate (
    serial     text        PRIMARY KEY, -- the certificate's serial number, hex
    thing      text        NOT NULL,
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    method     text        NOT NULL, -- enroll, renew
    not_before timestamptz NOT NULL,
    not_after  timestamptz NOT NULL,
    issued_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    reason     text        NOT NULL DEFAULT ''
);
CREATE INDEX certs_certificate_thing ON certs_certificate (thing, issued_at DESC);
CREATE INDEX certs_certificate_revoked ON certs_certificate (key) WHERE revoked_at IS NOT NULL;
