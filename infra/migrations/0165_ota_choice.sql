-- +goose Up
-- When the owner of a robot wants its updates. It ends once the robot runs the release, and with the ownership.
CREATE TABLE ota_choice (
	thing   text PRIMARY KEY,
	release text NOT NULL,        -- that the robot was to get when its owner chose
	now     boolean NOT NULL,     -- at once, while until is to come
	until   timestamptz NOT NULL, -- otherwise: postponed until then, and at night from then on
	first   timestamptz,          -- when this release was postponed first
	chosen  timestamptz NOT NULL
);

-- Why a robot has not begun, as a word, and how much of the archive it has downloaded.
ALTER TABLE ota_status ADD COLUMN waits text NOT NULL DEFAULT '', ADD COLUMN percent integer NOT NULL DEFAULT 0;
