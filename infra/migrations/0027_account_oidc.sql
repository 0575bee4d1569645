-- +goose Up
-- Operators whom an identity provider vouches for: by its own name for the person, because an e-mail address may be given to another one.
CREATE TABLE account_oidc (
    issuer  text NOT NULL,
    subject text NOT NULL,
    account uuid NOT NULL REFERENCES account_account (id) ON DELETE CASCADE,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX account_oidc_account ON account_oidc (account);
