-- +goose Up
-- Passkeys of operators: public keys with their counters, as the WebAuthn library keeps them.
CREATE TABLE account_passkey (
    id         bytea       PRIMARY KEY, -- the authenticator's
    account    uuid        NOT NULL REFERENCES account_account (id) ON DELETE CASCADE,
    name       text        NOT NULL,
    credential jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    last_used  timestamptz
);
CREATE INDEX account_passkey_account ON account_passkey (account);

-- Challenges that wait for their answer. One goes when it is answered, so that no answer is good twice, in whichever process.
CREATE TABLE account_ceremony (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32), -- SHA-256 of its name
    data       jsonb       NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX account_ceremony_expires ON account_ceremony (expires_at);
