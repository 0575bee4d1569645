-- +goose Up
-- What alerts look at, in windows that end now: one row for a robot and what it had lately, whatever the number of events. das_name counts by minute from now on; rows of
-- the previous release count by hour.
CREATE TABLE das_last (
    thing   text        COLLATE "C" NOT NULL,
    version text        COLLATE "C" NOT NULL,
    class   text        COLLATE "C" NOT NULL, -- '': any event, to the minute; crash; fault/ and its code
    last    timestamptz NOT NULL, -- receipt of the latest
    PRIMARY KEY (thing, version, class)
) WITH (fillfactor = 70);
INSERT INTO das_last (thing, version, class, last) SELECT thing, version, class, least(max(at) + interval '1 hour', clock_timestamp()) FROM das_robot
    WHERE every = 3600 AND (class IN ('', 'crash') OR class LIKE 'fault/%') GROUP BY thing, version, class;

-- How many robots were heard of in an hour: the rows of das_robot of that hour with the class ''.
CREATE TABLE das_heard (
    at      timestamptz NOT NULL,
    version text        COLLATE "C" NOT NULL,
    robots  bigint      NOT NULL,
    PRIMARY KEY (at, version)
);
INSERT INTO das_heard (at, version, robots) SELECT at, version, count(*) FROM das_robot WHERE every = 3600 AND class = '' GROUP BY at, version;
CREATE INDEX das_name_event ON das_name (event, at);
