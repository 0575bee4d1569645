-- +goose Up
-- Where accounts signed in lately: strangers who guess elsewhere do not hold them up there. A place is the SHA-256 of an address, of IPv6 its /64.
CREATE TABLE account_near (
    account uuid        NOT NULL REFERENCES account_account (id) ON DELETE CASCADE,
    place   bytea       NOT NULL CHECK (octet_length(place) = 32),
    last    timestamptz NOT NULL,
    PRIMARY KEY (account, place)
);
CREATE INDEX account_near_last ON account_near (last);
