-- +goose Up
-- Documents (jdocs): the current version of each, and what was accepted before. A document belongs to a thing or to an account; the
-- other column is ''. A deleted document stays as a row without text, so that no version of a key comes twice.
CREATE TABLE jdocs_doc (
    thing       text        NOT NULL DEFAULT '',
    account     text        NOT NULL DEFAULT '',
    name        text        NOT NULL,
    doc_version bigint      NOT NULL CHECK (doc_version > 0),
    fmt_version bigint      NOT NULL,
    client_meta text        NOT NULL DEFAULT '',
    json_doc    text        NOT NULL, -- text, not jsonb: kept byte for byte
    deleted     boolean     NOT NULL DEFAULT false,
    changed_by  text        NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (thing, account, name)
);
-- A listener that was away asks what changed meanwhile.
CREATE INDEX jdocs_doc_changed_at ON jdocs_doc (changed_at);

CREATE TABLE jdocs_history (
    thing       text        NOT NULL,
    account     text        NOT NULL,
    name        text        NOT NULL,
    doc_version bigint      NOT NULL,
    fmt_version bigint      NOT NULL,
    client_meta text        NOT NULL,
    json_doc    text        NOT NULL,
    deleted     boolean     NOT NULL,
    changed_by  text        NOT NULL,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (thing, account, name, doc_version)
);
