-- +goose Up
-- Events of robots (VEC-DAS-09), in partitions by day of receipt in UTC, made ahead by das.EnsurePartitions. Nothing here enforces that an
-- event is stored once: a unique key cannot span partitions. das_range does, in the transaction of the COPY.
CREATE TABLE das_event (
    received       timestamptz NOT NULL,
    grp            bigint      NOT NULL, -- das_group.id
    thing          text        NOT NULL,
    boot_id        text        NOT NULL,
    seq            bigint      NOT NULL,
    ts             bigint      NOT NULL, -- ms since 1970, by the robot's clock
    uptime_ms      bigint      NOT NULL,
    unsynced       boolean     NOT NULL, -- ts was a guess (VEC-BOOT-14)
    level          text        NOT NULL,
    source         text        NOT NULL,
    robot_version  text        NOT NULL,
    profile_id     text        NOT NULL,
    feature_type   text        NOT NULL,
    feature_run_id text        NOT NULL,
    ble_conn_id    text,
    wifi_conn_id   text,
    event          text        NOT NULL,
    s1 text, s2 text, s3 text, s4 text,
    i1 bigint, i2 bigint, i3 bigint, i4 bigint
) PARTITION BY RANGE (received);
CREATE INDEX das_event_received ON das_event (received);
CREATE INDEX das_event_thing ON das_event (thing, received);

-- What each boot of each thing delivered: the sequence numbers as ranges. A row outlives the events it speaks of.
CREATE TABLE das_range (
    thing   text           NOT NULL,
    boot_id text           NOT NULL,
    seqs    int8multirange NOT NULL DEFAULT '{}',
    updated timestamptz    NOT NULL,
    PRIMARY KEY (thing, boot_id)
) WITH (fillfactor = 70);
CREATE INDEX das_range_updated ON das_range (updated);

-- One row per transaction. xid orders groups by visibility, so that a reader behind pg_snapshot_xmin misses none.
CREATE TABLE das_group (
    id       bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    xid      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    received timestamptz NOT NULL,
    events   integer     NOT NULL,
    raw_key  text        NOT NULL -- the batches as they came, in S3
);
CREATE INDEX das_group_xid ON das_group (xid);
CREATE INDEX das_group_received ON das_group (received);

-- Raw batches that could not go to S3 yet.
CREATE TABLE das_raw (
    key      text        PRIMARY KEY,
    received timestamptz NOT NULL,
    body     bytea       NOT NULL
);
ALTER TABLE das_raw ALTER COLUMN body SET STORAGE EXTERNAL; -- gzip already
