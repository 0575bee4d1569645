-- +goose Up
-- The database belongs to Kennel; each domain adds its own tables in its own file.
COMMENT ON SCHEMA public IS 'Kennel: tables are prefixed by the domain that owns them';
