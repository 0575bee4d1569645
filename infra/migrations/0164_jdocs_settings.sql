-- +goose Up
-- The settings of an AmigoBot are amigo.RobotSettings (infra/adr/0039). Their versions, texts, authors and times stay as they are.
-- Until the previous release has ended it may still begin a document under the former name: it gets the new one.
-- +goose StatementBegin
CREATE FUNCTION jdocs_settings_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.name := 'amigo.RobotSettings';
	RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER jdocs_settings_name BEFORE INSERT ON jdocs_doc FOR EACH ROW
	WHEN (NEW.name = 'vic.RobotSettings' AND NEW.thing LIKE 'amigo:%') EXECUTE FUNCTION jdocs_settings_name();
CREATE TRIGGER jdocs_settings_name BEFORE INSERT ON jdocs_history FOR EACH ROW
	WHEN (NEW.name = 'vic.RobotSettings' AND NEW.thing LIKE 'amigo:%') EXECUTE FUNCTION jdocs_settings_name();

-- A document that an operator forced under the new name keeps the former one from moving: neither is lost.
CREATE TEMPORARY TABLE jdocs_settings_moving ON COMMIT DROP AS
	SELECT thing FROM jdocs_doc AS d WHERE name = 'vic.RobotSettings' AND thing LIKE 'amigo:%'
		AND NOT EXISTS (SELECT 1 FROM jdocs_doc AS n WHERE n.thing = d.thing AND n.account = d.account AND n.name = 'amigo.RobotSettings');
UPDATE jdocs_doc SET name = 'amigo.RobotSettings' WHERE name = 'vic.RobotSettings' AND thing IN (SELECT thing FROM jdocs_settings_moving);
UPDATE jdocs_history SET name = 'amigo.RobotSettings' WHERE name = 'vic.RobotSettings' AND thing IN (SELECT thing FROM jdocs_settings_moving);

-- The versions that robots said they have.
UPDATE registry_thing SET status = replace(status::text, '"vic.RobotSettings"', '"amigo.RobotSettings"')::json
	WHERE thing LIKE 'amigo:%' AND status::text LIKE '%"vic.RobotSettings"%';

-- A robot's zone follows its settings, whatever its species.
CREATE OR REPLACE TRIGGER rollout_zone_made AFTER INSERT ON jdocs_doc FOR EACH ROW WHEN (NEW.thing <> '' AND NEW.name LIKE '%.RobotSettings') EXECUTE FUNCTION rollout_zone_follow();
CREATE OR REPLACE TRIGGER rollout_zone_changed AFTER UPDATE ON jdocs_doc FOR EACH ROW
	WHEN (NEW.thing <> '' AND NEW.name LIKE '%.RobotSettings' AND NEW.json_doc <> OLD.json_doc) EXECUTE FUNCTION rollout_zone_follow();
CREATE OR REPLACE TRIGGER rollout_zone_gone AFTER DELETE ON jdocs_doc FOR EACH ROW WHEN (OLD.thing <> '' AND OLD.name LIKE '%.RobotSettings') EXECUTE FUNCTION rollout_zone_follow();
