-- +goose Up
-- What each robot uploaded with temporary credentials on its latest day (UTC).
CREATE TABLE sts_usage (
    thing text   PRIMARY KEY,
    day   date   NOT NULL,
    bytes bigint NOT NULL
);
