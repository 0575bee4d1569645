-- +goose Up
-- How a session was opened: 'password', 'issued' (a program that proved itself another way), 'oidc', 'passkey'. A first password that somebody
-- else has seen opens one that is good for choosing another password only; the other ways do not depend on it.
ALTER TABLE account_session ADD COLUMN method text NOT NULL DEFAULT 'password';
