-- +goose Up
-- When a document was last changed by others than its robot, which a listener that was away asks for. A robot's own write leaves every index
-- alone, so that Postgres need not touch one (a heap-only update).
ALTER TABLE jdocs_doc ADD COLUMN told_at timestamptz;
UPDATE jdocs_doc SET told_at = changed_at WHERE thing NOT IN ('', changed_by) AND changed_at > now() - interval '1 day';
CREATE INDEX jdocs_doc_told_at ON jdocs_doc (told_at);
DROP INDEX jdocs_doc_changed_at;
