-- +goose Up
-- The account of the owner who gave a command: it is that person's to export and erase, and ends with the ownership. Commands of owners that were given before have none.
ALTER TABLE command_outbox ADD COLUMN account text;
CREATE INDEX command_outbox_account ON command_outbox (account) WHERE account IS NOT NULL;
