-- +goose Up
CREATE TABLE account_account (
    id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    email       text        NOT NULL UNIQUE CHECK (email = lower(email)),
    role        text        NOT NULL,
    password    text        NOT NULL, -- argon2id, text form
    must_change boolean     NOT NULL DEFAULT false,
    disabled    boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX account_account_text ON account_account ((id::text)); -- joins the audit log's actor

CREATE TABLE account_session (
    token      bytea       PRIMARY KEY CHECK (octet_length(token) = 32), -- SHA-256
    account    uuid        NOT NULL REFERENCES account_account (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    addr       text        NOT NULL
);
CREATE INDEX account_session_account ON account_session (account);
CREATE INDEX account_session_expires ON account_session (expires_at);

-- Failed attempts in a row, by hash of what they aimed at: also e-mails that no account has.
CREATE TABLE account_attempt (
    key      bytea       PRIMARY KEY CHECK (octet_length(key) = 32),
    failures integer     NOT NULL,
    last     timestamptz NOT NULL
);

-- Who did what. The actor is an id; names are joined on reading.
CREATE TABLE account_audit (
    id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL,
    actor  text        NOT NULL,
    role   text        NOT NULL,
    addr   text        NOT NULL,
    action text        NOT NULL,
    object text        NOT NULL,
    detail text        NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION account_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'account_audit is append-only: % refused', TG_OP;
END $$;
-- +goose StatementEnd
CREATE TRIGGER account_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON account_audit
    FOR EACH STATEMENT EXECUTE FUNCTION account_audit_append_only();
