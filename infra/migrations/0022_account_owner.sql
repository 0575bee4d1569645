-- +goose Up
-- The rest of an owner's record (VEC-DOC-09); e-mail, user_id and time_created are in account_account. An account without a row here was
-- made by an operator.
CREATE TABLE account_profile (
    account             uuid    PRIMARY KEY REFERENCES account_account (id) ON DELETE CASCADE,
    app_name            text    NOT NULL DEFAULT '',
    app_platform        text    NOT NULL DEFAULT '',
    app_version         text    NOT NULL DEFAULT '',
    born                text    NOT NULL DEFAULT '', -- YYYY-MM-DD
    player_id           text    NOT NULL DEFAULT '', -- a GUID
    email_failure       text    NOT NULL DEFAULT '',
    email_blocked       boolean NOT NULL DEFAULT false,
    lang                text    NOT NULL DEFAULT '', -- IETF language tag
    family_name         text    NOT NULL DEFAULT '',
    given_name          text    NOT NULL DEFAULT '',
    gender              text    NOT NULL DEFAULT '',
    email_account       boolean NOT NULL DEFAULT true,
    no_autodelete       boolean NOT NULL DEFAULT false,
    password_complex    boolean NOT NULL DEFAULT false,
    status              text    NOT NULL DEFAULT 'active',
    deactivation_reason text    NOT NULL DEFAULT '',
    purge_reason        text    NOT NULL DEFAULT ''
);

-- Who signed up and has not proved the e-mail yet. The same e-mail may be here any number of times: whoever proves it gets the account.
CREATE TABLE account_signup (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(), -- becomes the account's
    email      text        NOT NULL CHECK (email = lower(email)),
    password   text        NOT NULL, -- argon2id, text form
    profile    jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX account_signup_email ON account_signup (email);
CREATE INDEX account_signup_expires ON account_signup (expires_at);

-- What a link or code in a letter stands for. It goes when it is used.
CREATE TABLE account_ticket (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32), -- SHA-256
    purpose    text        NOT NULL CHECK (purpose IN ('verify', 'reset', 'email')),
    account    uuid        REFERENCES account_account (id) ON DELETE CASCADE,
    signup     uuid        REFERENCES account_signup (id) ON DELETE CASCADE,
    email      text        NOT NULL, -- that it proves
    expires_at timestamptz NOT NULL,
    CHECK (num_nonnulls(account, signup) = 1)
);
CREATE INDEX account_ticket_account ON account_ticket (account);
CREATE INDEX account_ticket_signup ON account_ticket (signup);
CREATE INDEX account_ticket_expires ON account_ticket (expires_at);

-- Session tokens for apps, which hand them to robots; a robot may use one once (VEC-TOK-05).
CREATE TABLE account_user_session (
    token      bytea       PRIMARY KEY CHECK (octet_length(token) = 32), -- SHA-256
    account    uuid        REFERENCES account_account (id) ON DELETE CASCADE,
    signup     uuid        REFERENCES account_signup (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    burned_at  timestamptz,
    burned_by  text        NOT NULL DEFAULT '', -- a thing
    CHECK (num_nonnulls(account, signup) = 1)
);
CREATE INDEX account_user_session_account ON account_user_session (account);
CREATE INDEX account_user_session_signup ON account_user_session (signup);
CREATE INDEX account_user_session_expires ON account_user_session (expires_at);

-- Deletions under way: which domains have erased what they held. The row goes with the account.
CREATE TABLE account_deletion (
    account      uuid        PRIMARY KEY REFERENCES account_account (id) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL,
    erased       text[]      NOT NULL DEFAULT '{}'
);
