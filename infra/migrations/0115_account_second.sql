-- +goose Up
-- Second factors of operators: the sealed secret of an authenticator app. since is NULL until its first code was right.
CREATE TABLE account_totp (
    account uuid        PRIMARY KEY REFERENCES account_account (id) ON DELETE CASCADE,
    secret  bytea       NOT NULL,
    step    bigint      NOT NULL DEFAULT 0, -- of the last code that was used: none is good twice
    since   timestamptz
);
-- Codes for who lost the app, each good once.
CREATE TABLE account_recovery (
    account uuid  NOT NULL REFERENCES account_totp (account) ON DELETE CASCADE,
    hash    bytea NOT NULL CHECK (octet_length(hash) = 32), -- SHA-256: the codes are random
    PRIMARY KEY (account, hash)
);
