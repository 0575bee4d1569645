-- +goose Up
-- Why a stored dump could not be looked at again when symbols came; '': it could.
ALTER TABLE crash_crash ADD COLUMN problem text NOT NULL DEFAULT '';
