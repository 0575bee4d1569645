-- +goose Up
-- Operators who were removed keep their name in what they did: the lines of the audit log stay, and this is what the ids in them were called.
CREATE TABLE account_former (
    id      uuid        PRIMARY KEY, -- of the account, which is gone
    email   text        NOT NULL,
    removed timestamptz NOT NULL
);
