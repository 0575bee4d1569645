-- +goose Up
-- Present robots of a species that are still to be hinted that another release is wanted of them.
CREATE TABLE ota_round (
	species text PRIMARY KEY,
	num     bigint GENERATED ALWAYS AS IDENTITY, -- another one for each change of the wish
	after   text COLLATE "C" NOT NULL DEFAULT '' -- the last robot that was hinted
);
