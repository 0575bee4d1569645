-- +goose Up
-- What an operator wants to know about this installation before strangers reach it: when something was last done, and when it last did not work.
CREATE TABLE ready_record (
    kind   text        NOT NULL, -- backup, drill, mail
    ok     boolean     NOT NULL,
    at     timestamptz NOT NULL,
    says   text        NOT NULL, -- a sentence
    report jsonb       NOT NULL DEFAULT 'null',
    PRIMARY KEY (kind, ok)
);
