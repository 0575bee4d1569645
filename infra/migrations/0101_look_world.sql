-- +goose Up
-- The plan of the world that a simulated robot is in (cloud/api/live): as the tree, it is in some frames only.
ALTER TABLE robot_look ADD COLUMN plan jsonb; -- {rev, map}; a frame's world names the revision that belongs to it
