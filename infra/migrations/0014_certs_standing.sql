-- +goose Up
-- A robot with a factory certificate, or one that an operator approved, has a key and no claim secret.
ALTER TABLE certs_claim ALTER COLUMN secret_hash DROP NOT NULL;
-- When the thing's identity was taken away, until an operator releases it. Factory certificates heed it too.
ALTER TABLE certs_claim ADD COLUMN revoked_at timestamptz;
UPDATE certs_claim c SET revoked_at = r.at
    FROM (SELECT thing, max(revoked_at) AS at FROM certs_certificate WHERE revoked_at IS NOT NULL GROUP BY thing) r WHERE r.thing = c.thing;
CREATE INDEX certs_claim_revoked ON certs_claim (thing) WHERE revoked_at IS NOT NULL;

-- Revoked because its key was given up (a wipe, another board), not because the robot was in bad hands.
ALTER TABLE certs_certificate ADD COLUMN released boolean NOT NULL DEFAULT false;
CREATE INDEX certs_certificate_revocations ON certs_certificate (revoked_at DESC, serial DESC) WHERE revoked_at IS NOT NULL;
