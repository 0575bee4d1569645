-- +goose Up
-- What became of a robot that was granted a release, or that is watched for comparison (state 'control').
ALTER TABLE rollout_member ADD COLUMN updated timestamptz, ADD COLUMN bad text NOT NULL DEFAULT '';
UPDATE rollout_member SET updated = at WHERE state = 'done';
CREATE INDEX rollout_member_returning ON rollout_member (rollout) WHERE state = 'back';

-- How many robots hold a grant, so that one that asks need not count them. By a trigger: the release before does not know the column.
ALTER TABLE rollout_rollout ADD COLUMN open integer NOT NULL DEFAULT 0;
UPDATE rollout_rollout AS r SET open = (SELECT count(*) FROM rollout_member AS m WHERE m.rollout = r.id AND m.state IN ('granted', 'updating'));
-- +goose StatementBegin
CREATE FUNCTION rollout_member_open_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		UPDATE rollout_rollout AS r SET open = r.open + n.n FROM
			(SELECT rollout, count(*) AS n FROM fresh WHERE state IN ('granted', 'updating') GROUP BY rollout) AS n WHERE r.id = n.rollout;
	ELSIF TG_OP = 'DELETE' THEN
		UPDATE rollout_rollout AS r SET open = r.open - n.n FROM
			(SELECT rollout, count(*) AS n FROM gone WHERE state IN ('granted', 'updating') GROUP BY rollout) AS n WHERE r.id = n.rollout;
	ELSE
		UPDATE rollout_rollout AS r SET open = r.open + n.n FROM
			(SELECT rollout, sum(n) AS n FROM (
				SELECT rollout, 1 AS n FROM fresh WHERE state IN ('granted', 'updating') UNION ALL SELECT rollout, -1 FROM gone WHERE state IN ('granted', 'updating')
			) AS both_sides GROUP BY rollout) AS n WHERE r.id = n.rollout AND n.n <> 0;
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER rollout_member_opened AFTER INSERT ON rollout_member REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION rollout_member_open_count();
CREATE TRIGGER rollout_member_moved AFTER UPDATE ON rollout_member REFERENCING OLD TABLE AS gone NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION rollout_member_open_count();
CREATE TRIGGER rollout_member_left AFTER DELETE ON rollout_member REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rollout_member_open_count();
