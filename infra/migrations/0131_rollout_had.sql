-- +goose Up
-- The problems that a robot had when it was granted, with spaces between: a guard counts those that came with the release.
ALTER TABLE rollout_member ADD COLUMN had text NOT NULL DEFAULT '';
