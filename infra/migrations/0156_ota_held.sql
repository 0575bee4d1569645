-- +goose Up
-- A wish that a restored backup brought back waits until a person makes it again: it may have been taken back since the backup was made.
ALTER TABLE ota_desired ADD COLUMN held boolean NOT NULL DEFAULT false;
