-- +goose Up
-- The certificate that was shown with the last attempt of a step; null: none.
ALTER TABLE registry_step ADD COLUMN shown json;
