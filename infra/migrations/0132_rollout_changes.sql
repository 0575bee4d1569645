-- +goose Up
-- Numbers the changes of robots' standings, so that a step of a rollout reads only those since the last one. By a trigger: the release before does not know the column.
CREATE SEQUENCE rollout_member_num;
ALTER TABLE rollout_member ADD COLUMN num bigint NOT NULL DEFAULT 0;
CREATE INDEX rollout_member_num_of ON rollout_member (rollout, num);
-- +goose StatementBegin
CREATE FUNCTION rollout_member_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.num := nextval('rollout_member_num');
	RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER rollout_member_number BEFORE INSERT OR UPDATE ON rollout_member FOR EACH ROW EXECUTE FUNCTION rollout_member_number();
