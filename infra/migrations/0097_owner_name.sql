-- +goose Up
-- Staff looks for robots by a part of what their owners call them.
CREATE EXTENSION IF NOT EXISTS pg_trgm; -- of Postgres' own, trusted: the owner of a database may
CREATE INDEX owner_tenure_name ON owner_tenure USING gin (lower(name) gin_trgm_ops) WHERE until IS NULL AND name <> '';
