-- +goose Up
-- How much lay in the bucket when (cloud/storage).
CREATE TABLE storage_usage (
    class   text        NOT NULL, -- first folder of the keys
    at      timestamptz NOT NULL,
    objects bigint      NOT NULL,
    bytes   bigint      NOT NULL,
    PRIMARY KEY (class, at)
);
CREATE INDEX storage_usage_at ON storage_usage (at);
