-- The twenty statements that a minute of 100 light robots of the profile lively makes most often, with their number, as Postgres logged them; without
-- transactions, locks, notifications, COPY and those of the libraries for jobs and migrations. TestPlans looks each up in the source, by
-- its beginning or by the text after "source:".

-- 536 times
SELECT coalesce(t.rev, 0), clock_timestamp(), coalesce(t.boot_id, ''), coalesce(t.connect_seq, 0), coalesce(t.seq, 0), t.lease_until, coalesce(t.gone, false), coalesce(t.present, false), t.since, t.last_seen FROM (SELECT $1::text AS thing) AS q LEFT JOIN registry_thing AS t USING (thing);

-- 520 times
WITH saved AS ( INSERT INTO registry_thing AS t (thing, present, since, last_seen, lease_until, gone, boot_id, connect_seq, seq, status, clock_ms) SELECT $1, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12 WHERE $2::bigint = 0 OR EXISTS (SELECT FROM registry_thing WHERE thing = $1) ON CONFLICT (thing) DO UPDATE SET rev = t.rev + 1, changed = clock_timestamp(), present = excluded.present, since = excluded.since, last_seen = excluded.last_seen, lease_until = excluded.lease_until, gone = excluded.gone, boot_id = excluded.boot_id, connect_seq = excluded.connect_seq, seq = excluded.seq, status = coalesce(excluded.status, t.status), clock_ms = CASE WHEN excluded.status IS NULL THEN t.clock_ms ELSE excluded.clock_ms END WHERE t.rev = $2 RETURNING thing), history AS ( INSERT INTO registry_presence (thing, at, present) SELECT saved.thing, c.at, c.present FROM saved, unnest($13::timestamptz[], $14::boolean[]) AS c (at, present) ON CONFLICT DO NOTHING RETURNING 1), hint AS (SELECT pg_notify($15, '') FROM history LIMIT 1), facets AS (UPDATE registry_facet SET (os, os_key, agent, agent_key, body, body_key, model, volts, level, late, loop, problems, codes, fit) = ROW($16::text, $17::text, $18::text, $19::text, $20::text, $21::text, $22::text, $23::double precision, $24::text, $25::double precision, $26::text, $27::text[], $28::text[], $29::smallint) WHERE thing = (SELECT thing FROM saved WHERE $11::json IS NOT NULL) AND (os, os_key, agent, agent_key, body, body_key, model, volts, level, late, loop, problems, codes, fit) IS DISTINCT FROM ($16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, CASE WHEN crashes = '[]' THEN $27 ELSE registry_crash_kinds($27, crashes) END, CASE WHEN crashes = '[]' THEN $28 ELSE registry_crash_codes($28, crashes) END, $29)) SELECT EXISTS (SELECT FROM saved), EXISTS (SELECT FROM hint);

-- 286 times
SELECT r.id::text, r.doc, '{}'::jsonb, coalesce(m.state, ''), coalesce(m.was, ''), coalesce(m.granted, 'epoch'), coalesce(m.until, 'epoch'), coalesce(m.at, 'epoch'), coalesce(m.tries, 0), coalesce(m.code, 0), coalesce(m.phase, ''), coalesce(m.reason, ''), coalesce(m.had, ''), m.updated, coalesce(m.bad, '') FROM ((SELECT id FROM rollout_rollout WHERE species = $2 ORDER BY num DESC LIMIT 20) UNION SELECT rollout FROM rollout_member WHERE thing = $1 AND state IN ('granted', 'updating', 'silent', 'back')) AS near JOIN rollout_rollout AS r USING (id) LEFT JOIN rollout_member AS m ON m.rollout = r.id AND m.thing = $1 WHERE r.state <> 'aborted' OR m.thing IS NOT NULL ORDER BY r.num DESC;

-- 282 times
WITH due AS ( SELECT thing FROM registry_thing WHERE present AND lease_until <= clock_timestamp() ORDER BY lease_until LIMIT $1 FOR UPDATE SKIP LOCKED), gone AS ( UPDATE registry_thing AS t SET present = false, since = t.lease_until, rev = t.rev + 1, changed = clock_timestamp() FROM due WHERE t.thing = due.thing RETURNING t.thing, t.lease_until), history AS ( INSERT INTO registry_presence (thing, at, present) SELECT thing, lease_until, false FROM gone ON CONFLICT DO NOTHING), hint AS (SELECT pg_notify($2, '') FROM gone LIMIT 1) SELECT (SELECT count(*) FROM gone) + 0 * (SELECT count(*) FROM hint);

-- 203 times
-- source: FROM jdocs_doc WHERE thing = $1 AND account = $2 AND name = $3 AND NOT deleted
SELECT doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at FROM jdocs_doc WHERE thing = $1 AND account = $2 AND name = $3 AND NOT deleted;

-- 201 times
INSERT INTO registry_step AS o (thing, name, ok, code, first, last, times, peer, version, detail, shown) SELECT thing, name, ok, code, began, began, n, peer, version, detail, shown::json FROM unnest($1::text[], $2::text[], $3::bool[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[]) AS s (thing, name, ok, code, at, peer, version, detail, shown, n), coalesce(at, clock_timestamp()) AS began ORDER BY thing ON CONFLICT (thing, name, ok, code) DO UPDATE SET last = greatest(o.last, excluded.last), peer = excluded.peer, version = excluded.version, detail = excluded.detail, shown = excluded.shown, (first, times) = (SELECT CASE WHEN interrupted THEN excluded.first ELSE o.first END, CASE WHEN interrupted THEN excluded.times ELSE o.times + excluded.times END FROM (SELECT EXISTS (SELECT FROM registry_step AS other WHERE other.thing = o.thing AND other.name = o.name AND (other.ok, other.code) <> (o.ok, o.code) AND other.last > o.last) AS interrupted) AS q);

-- 200 times
WITH made AS (INSERT INTO registry_thing (thing) SELECT DISTINCT t FROM unnest($1::text[]) AS t ORDER BY t ON CONFLICT DO NOTHING RETURNING 1) SELECT pg_notify($2, '') FROM made LIMIT 1;

-- 189 times
SELECT version, since, scope = $1 FROM ota_desired WHERE scope IN ($1, $2) AND NOT held ORDER BY scope = $1 DESC LIMIT 1;

-- 176 times
WITH put AS ( INSERT INTO jdocs_doc AS d (thing, account, name, doc_version, fmt_version, client_meta, json_doc, changed_by, told_at) VALUES ($1, $2, $3, 1, $5, $6, $7, $4, CASE WHEN $1 NOT IN ('', $4) THEN clock_timestamp() END) ON CONFLICT (thing, account, name) DO UPDATE SET doc_version = d.doc_version + 1, fmt_version = excluded.fmt_version, client_meta = excluded.client_meta, json_doc = excluded.json_doc, deleted = false, changed_by = excluded.changed_by, changed_at = clock_timestamp(), told_at = CASE WHEN $1 IN ('', $4) THEN d.told_at ELSE clock_timestamp() END WHERE d.deleted RETURNING doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at), hist AS ( INSERT INTO jdocs_history (thing, account, name, doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at) SELECT $1, $2, $3, doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at FROM put ) SELECT doc_version, CASE WHEN $1 NOT IN ('', $4) THEN pg_notify('jdocs', $1 || ' ' || $3 || ' ' || doc_version)::text END FROM put;

-- 159 times
SELECT u.thing, CASE WHEN t.until IS NULL THEN coalesce(t.account, '') ELSE '' END, n.now, extract(epoch FROM n.now - coalesce(greatest(t.since, t.until), 'epoch'))::float8, extract(epoch FROM n.now - coalesce(o.changed_at, 'epoch'))::float8 FROM (SELECT clock_timestamp() AS now) n, unnest($1::text[]) AS u (thing) LEFT JOIN LATERAL (SELECT account, since, until FROM owner_tenure WHERE thing = u.thing ORDER BY id DESC LIMIT 1) t ON true LEFT JOIN owner_thing o ON o.thing = u.thing;

-- 159 times
INSERT INTO das_range (thing, boot_id, updated) SELECT u.thing, u.boot_id, $3 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (thing, boot_id, n) ORDER BY u.n ON CONFLICT DO NOTHING;

-- 159 times
SELECT r.thing, r.boot_id, r.seqs FROM das_range r JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (thing, boot_id, n) ON r.thing = u.thing AND r.boot_id = u.boot_id ORDER BY u.n FOR UPDATE OF r;

-- 159 times
UPDATE das_range r SET seqs = u.seqs::int8multirange, updated = greatest(updated, $4), origin = greatest(r.origin, u.origin), ahead_ms = greatest(r.ahead_ms, u.ahead), began_ms = least(r.began_ms, u.began) FROM unnest($1::text[], $2::text[], $3::text[], $5::text[], $6::bigint[], $7::bigint[]) AS u (thing, boot_id, seqs, origin, ahead, began) WHERE r.thing = u.thing AND r.boot_id = u.boot_id;

-- 159 times
-- source: SELECT s.thing, (clock_timestamp() AT TIME ZONE 'UTC')::date, s.bytes FROM unnest
INSERT INTO "intake_usage" AS u (thing, day, bytes) SELECT s.thing, (clock_timestamp() AT TIME ZONE 'UTC')::date, s.bytes FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS s (thing, bytes, n) ORDER BY s.n ON CONFLICT (thing) DO UPDATE SET day = EXCLUDED.day, bytes = EXCLUDED.bytes + CASE WHEN u.day = EXCLUDED.day THEN u.bytes ELSE 0 END RETURNING thing, bytes;

-- 156 times
SELECT id, received, events FROM das_group WHERE NOT rolled ORDER BY id LIMIT $1;

-- 102 times
SELECT t.thing FROM registry_thing AS t WHERE t.thing IN ( SELECT f.thing COLLATE "default" FROM registry_facet AS f JOIN unnest($1::text[], $2::timestamptz[]) AS n (thing, cert) ON n.thing = f.thing WHERE f.cert <> coalesce(n.cert, '-infinity')) ORDER BY t.thing FOR UPDATE;

-- 101 times
UPDATE registry_facet AS f SET cert = coalesce(n.cert, '-infinity') FROM unnest($1::text[], $2::timestamptz[]) AS n (thing, cert) WHERE f.thing = n.thing AND f.thing = ANY($3);

-- 101 times
UPDATE registry_thing SET rev = rev + 1, changed = clock_timestamp() WHERE thing = ANY($1);

-- 100 times
INSERT INTO certs_claim (thing, secret_hash, registered_at) VALUES ($1, $2, $3) ON CONFLICT (thing) DO UPDATE SET secret_hash = $2, registered_at = $3 WHERE certs_claim.key IS NULL AND certs_claim.revoked_at IS NULL;

-- 100 times
WITH c AS (UPDATE certs_claim SET key = $3, bound_at = $7 WHERE thing = $2 AND key IS NOT DISTINCT FROM $8 AND secret_hash IS NOT DISTINCT FROM $9 AND revoked_at IS NULL RETURNING 1), old AS (UPDATE certs_certificate SET revoked_at = $7, released = true, reason = 'replaced by another key' WHERE thing = $2 AND key = $8 AND revoked_at IS NULL AND EXISTS (SELECT FROM c)) INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) SELECT $1, $2, $3, $4, $5, $6 FROM c;
