-- +goose Up
-- The lowest version that a release can be installed on: robots that run an older one get that release first. '': any.
ALTER TABLE ota_release ADD COLUMN lowest text NOT NULL DEFAULT '';
