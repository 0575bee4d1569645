-- +goose Up
-- What an owner is to be told by letter: a robot is theirs, or is not any more. It is written with the change itself and gone once the letter is
-- posted.
CREATE TABLE owner_news (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text        NOT NULL CHECK (account <> ''),
    thing   text        NOT NULL,
    name    text        NOT NULL, -- what the owner called it
    ended   boolean     NOT NULL, -- else begun
    why     text        NOT NULL, -- how it began, or why it ended
    at      timestamptz NOT NULL
);
CREATE INDEX owner_news_account ON owner_news (account);
