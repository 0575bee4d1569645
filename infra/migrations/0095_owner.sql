-- +goose Up
-- A thing that ever had a code or an owner. Its row is the lock of everything about its ownership.
CREATE TABLE owner_thing (
    thing      text        PRIMARY KEY,
    wipe_key   text        NOT NULL DEFAULT '', -- of the last wipe it told of, so that a repetition is known
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp() -- of its owner, or of the owner's settings
);
CREATE INDEX owner_thing_changed_at ON owner_thing (changed_at);

-- Who owned what, from since until until. Ids only: the account is '' once the person was erased, the name goes with the ownership.
CREATE TABLE owner_tenure (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thing    text        NOT NULL,
    account  text        NOT NULL,
    how      text        NOT NULL,
    since    timestamptz NOT NULL,
    until    timestamptz,
    ended    text        NOT NULL DEFAULT '', -- why
    name     text        NOT NULL DEFAULT '', -- what the owner calls it
    transfer uuid,                            -- the offer that was accepted
    settled  boolean     NOT NULL DEFAULT true, -- other domains know of the end
    CHECK (until >= since),
    CHECK ((until IS NULL) = (ended = '')),
    CHECK (until IS NULL OR name = ''),
    CHECK (until IS NOT NULL OR account <> '')
);
CREATE UNIQUE INDEX owner_tenure_lasting ON owner_tenure (thing) WHERE until IS NULL;
CREATE INDEX owner_tenure_thing ON owner_tenure (thing, id DESC);
CREATE INDEX owner_tenure_account ON owner_tenure (account, since);
CREATE INDEX owner_tenure_unsettled ON owner_tenure (id) WHERE NOT settled;

-- Codes that robots show. The hash is keyed: ten minutes of a short code would not outlast a plain one.
CREATE TABLE owner_code (
    thing      text        PRIMARY KEY,
    locator    text        NOT NULL, -- first half of the code, by which it is found
    hash       bytea       NOT NULL CHECK (octet_length(hash) = 32),
    tries      integer     NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    tenure     bigint      REFERENCES owner_tenure (id) ON DELETE CASCADE -- that it led to: it is used
);
CREATE INDEX owner_code_locator ON owner_code (locator);
CREATE INDEX owner_code_expires_at ON owner_code (expires_at);

-- Codes that an account tried since a time.
CREATE TABLE owner_attempt (
    account text        PRIMARY KEY,
    tries   integer     NOT NULL,
    since   timestamptz NOT NULL
);

-- Robots that their owners offer to somebody: an e-mail or an account, as a keyed hash.
CREATE TABLE owner_transfer (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    tenure     bigint      NOT NULL UNIQUE REFERENCES owner_tenure (id) ON DELETE CASCADE,
    recipient  bytea       NOT NULL CHECK (octet_length(recipient) = 32),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX owner_transfer_recipient ON owner_transfer (recipient);
CREATE INDEX owner_transfer_expires_at ON owner_transfer (expires_at);
