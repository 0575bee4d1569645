-- +goose Up
-- The clock of each boot, which says whose an event is that came after a change of owner. Boots of before keep what their events say by themselves.
ALTER TABLE das_range ADD COLUMN ahead_ms bigint NOT NULL DEFAULT 0; -- at least so far the robot's clock was ahead of ours
ALTER TABLE das_range ADD COLUMN began_ms bigint; -- by a clock set from the network, uptime was 0 then or later; null: no event was recorded by such a clock
