-- +goose Up
-- The logs of all robots with one release (VEC-LOG-10).
CREATE INDEX uploads_log_os ON uploads_log (os, at DESC, id DESC);
