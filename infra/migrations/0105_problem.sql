-- +goose Up
-- Problems as kind/code, or the kind alone, beside their kinds: what filters, webhooks and alerts compare.
ALTER TABLE registry_facet ADD COLUMN codes text[] COLLATE "C" NOT NULL DEFAULT '{}';
CREATE INDEX registry_facet_codes ON registry_facet USING gin (codes) WHERE codes <> '{}';
