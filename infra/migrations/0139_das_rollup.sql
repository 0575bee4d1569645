-- +goose Up
-- Sums of das_event by time of receipt, for pages and alerts about the fleet. Each commit is added once: das_group.rolled says that it was. Commits of the former release,
-- and all that were there before, are added when their turn comes.
ALTER TABLE das_group ADD COLUMN rolled boolean NOT NULL DEFAULT false;
CREATE INDEX das_group_unrolled ON das_group (id) WHERE NOT rolled;

-- How many events of a class a robot sent in a slot of time while it ran a version. A robot leaves it with its events: erased, or expired into das_day.
CREATE TABLE das_robot (
    every   integer     NOT NULL, -- length of the slot in seconds: an hour or a day
    at      timestamptz NOT NULL, -- its begin
    thing   text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    class   text COLLATE "C" NOT NULL, -- das.Class; '': all events
    n       bigint      NOT NULL,
    PRIMARY KEY (every, at, thing, version, class)
) WITH (fillfactor = 80);

-- Events by name and hour.
CREATE TABLE das_name (
    at      timestamptz NOT NULL,
    version text COLLATE "C" NOT NULL,
    event   text COLLATE "C" NOT NULL,
    n       bigint      NOT NULL,
    PRIMARY KEY (at, event, version)
) WITH (fillfactor = 80);

-- What is left of a day whose robots have expired, for the whole fleet and for the cohorts of that time.
CREATE TABLE das_day (
    at      timestamptz NOT NULL,
    cohort  text COLLATE "C" NOT NULL, -- '': the whole fleet
    version text COLLATE "C" NOT NULL,
    class   text COLLATE "C" NOT NULL,
    robots  bigint      NOT NULL,
    n       bigint      NOT NULL,
    PRIMARY KEY (cohort, at, version, class)
);
