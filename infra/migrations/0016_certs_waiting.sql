-- +goose Up
-- Robots that asked for a certificate without any proof and wait for an operator. Bounded and expiring: rows not asked for are removed.
CREATE TABLE certs_waiting (
    thing      text        NOT NULL,
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    addr       text        NOT NULL, -- of the latest request
    network    text        NOT NULL, -- of the first request: address, or /64 of IPv6
    first_at   timestamptz NOT NULL,
    last_at    timestamptz NOT NULL,
    times      bigint      NOT NULL DEFAULT 1,
    refused_at timestamptz,
    reason     text        NOT NULL DEFAULT '',
    PRIMARY KEY (thing, key)
);
CREATE INDEX certs_waiting_last ON certs_waiting (last_at);
