-- +goose Up
-- Keys that sign access tokens. The private half is sealed (infra/seal) and goes when the key's turn is over.
CREATE TABLE token_key (
    kid        text        PRIMARY KEY,
    alg        text        NOT NULL,
    public     bytea       NOT NULL,
    private    bytea,
    sign_from  timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A robot acts for a user from created_at until ended_at. The user is '' once the person was erased.
CREATE TABLE token_association (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    num        bigint      GENERATED ALWAYS AS IDENTITY,
    thing      text        NOT NULL,
    user_id    text        NOT NULL,
    created_at timestamptz NOT NULL, -- whole seconds, as in tokens
    ended_at   timestamptz,
    reason     text        NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX token_association_lasting ON token_association (thing) WHERE ended_at IS NULL;
CREATE INDEX token_association_thing ON token_association (thing, num DESC);
CREATE INDEX token_association_user ON token_association (user_id);

-- Every access token that was made, until it has expired for a while; a revoked one for as long as it could be refreshed.
CREATE TABLE token_token (
    id          uuid        PRIMARY KEY,
    association uuid        NOT NULL, -- no foreign key: refreshing locks the row already
    parent      uuid,                 -- the token it was refreshed from
    how         text        NOT NULL,
    issued_at   timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz,
    reason      text        NOT NULL DEFAULT ''
);
CREATE INDEX token_token_association ON token_token (association);
CREATE INDEX token_token_expires ON token_token USING brin (expires_at); -- rows come nearly in this order; a refresh pays next to nothing
CREATE INDEX token_token_revoked ON token_token (revoked_at) WHERE revoked_at IS NOT NULL;

-- The certificate of each robot's SDK gateway, which clients pin.
CREATE TABLE token_session_certificate (
    thing      text        PRIMARY KEY,
    pem        bytea       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
