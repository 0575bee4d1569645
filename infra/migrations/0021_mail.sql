-- +goose Up
-- Letters that wait to be sent. What they say, and the links in them, is made when they are sent.
CREATE TABLE mail_outbox (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    kind       text        NOT NULL,
    recipient  text        NOT NULL,
    account    text        NOT NULL, -- of an account, or of one that may become one; may be empty
    lang       text        NOT NULL,
    data       jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX mail_outbox_recipient ON mail_outbox (recipient);
CREATE INDEX mail_outbox_account ON mail_outbox (account);
CREATE INDEX mail_outbox_expires ON mail_outbox (expires_at);
