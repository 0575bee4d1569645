package app

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenpg"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/voice/answers"
	"kennel/cloud/voice/answers/answerspg"
	"kennel/cloud/voice/voice"
	"kennel/infra/api/ack"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/testwait"
	"kennel/jdocs"
	"kennel/speech/knowledge"
)

// unpacked adds to b what its gzip streams hold, wherever they begin.
func unpacked(b []byte) []byte {
	out := bytes.Clone(b)
	for rest := b; ; {
		i := bytes.Index(rest, []byte{0x1f, 0x8b, 8})
		if i < 0 {
			return out
		}
		rest = rest[i:]
		if z, err := gzip.NewReader(bytes.NewReader(rest)); err == nil {
			z.Multistream(false)
			more, _ := io.ReadAll(z) // as far as it goes
			out = append(append(out, '\n'), more...)
		}
		rest = rest[3:]
	}
}

// stores returns everything that this cloud keeps, by where: each row of each table as text, bytes among it as they are and unpacked, and each object.
func (w *wired) stores(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	rows, err := w.base.Pool.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 40 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		rows, err := w.base.Pool.Query(t.Context(), `SELECT x::text FROM `+table+` x`)
		if err != nil {
			t.Fatal(table, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(table, err)
		}
		for _, line := range lines {
			out[table] = append(append(out[table], line...), '\n')
			for _, part := range strings.Split(line, `\\x`)[1:] { // a bytea within a row
				end := strings.IndexFunc(part, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
				if end < 0 {
					end = len(part)
				}
				if b, err := hex.DecodeString(part[:end]); err == nil {
					out[table] = append(append(out[table], unpacked(b)...), '\n')
				}
			}
		}
	}
	for o, err := range w.base.Blobs.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, info, err := w.base.Blobs.Get(t.Context(), o.Key, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(body)
		_ = body.Close() // only read
		if err != nil {
			t.Fatal(err)
		}
		out["s3 "+o.Key] = append(fmt.Appendf(nil, "%s %v\n", o.Key, info.Metadata), unpacked(b)...)
	}
	return out
}

// holding returns where one of the words is, in any case.
func holding(stores map[string][]byte, words ...string) (found []string) {
	for where, b := range stores {
		b = bytes.ToLower(b)
		for _, word := range words {
			if bytes.Contains(b, []byte(strings.ToLower(word))) {
				found = append(found, where+" holds "+word)
			}
		}
	}
	slices.Sort(found)
	return found
}

// forms returns the ways in which a text may be written: in hex, and in base64 at each of the three places where it may begin within a longer text.
func forms(text string) []string {
	out := []string{text, hex.EncodeToString([]byte(text)), strings.ReplaceAll(text, "-", "")}
	for skip := range 3 {
		s := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + text + "xxx"))
		first := []int{0, 2, 3}[skip]
		whole := (skip+len(text))/3*4 - first // of letters that the text alone decides
		out = append(out, s[first:first+whole-1])
	}
	return out
}

// person is an owner of rex, and the words that are theirs alone.
type person struct {
	id, email, token, profile string
	home                      string // address
	words                     []string
}

const password = "correct horse battery staple"

// word makes up a word that leads to the person.
func (p *person) word(kind string) string {
	word := "planted" + strings.TrimSuffix(p.email, "@example.org") + kind
	p.words = append(p.words, word)
	return word
}

// person makes an account with a name, and signs it in.
func (w *wired) person(t *testing.T, name string) *person {
	t.Helper()
	w.people++
	p := &person{email: name + "@example.org", home: fmt.Sprint("203.0.113.", w.people)}
	a, _, err := w.Accounts.People.CreateAccount(t.Context(), p.email, auth.Owner, password)
	if err != nil {
		t.Fatal(err)
	}
	p.id, p.profile = string(a.ID), base64.StdEncoding.EncodeToString([]byte(a.ID))
	given, family := p.word("given"), p.word("family")
	if _, err = w.Accounts.People.Change(t.Context(), a.ID, account.Change{Given: &given, Family: &family}); err != nil {
		t.Fatal(err)
	}
	login, err := w.Accounts.SignIn.Login(t.Context(), p.email, password, p.home)
	if err != nil {
		t.Fatal(err)
	}
	p.token = login.Token.Reveal()
	return p
}

// as asks the API, which must agree.
func (w *wired) as(t *testing.T, token, method, path string, body any) string {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	code, said := w.get(t, method, path, string(b), "Content-Type", "application/json", "Authorization", "Bearer "+token)
	if code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, said)
	}
	return said
}

// send sends an event of rex for each word, and waits for the acknowledgement.
func (w *wired) send(t *testing.T, profile string, words ...string) {
	t.Helper()
	var evs []events.Event
	for _, word := range words {
		w.sent++
		evs = append(evs, events.Event{Seq: w.sent, TS: time.Now().UnixMilli(), Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", ProfileID: profile, Name: "test.word", S1: word})
	}
	if profile != "" {
		w.sent++
		evs = append(evs, events.Event{Seq: w.sent, TS: time.Now().UnixMilli(), Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", ProfileID: profile, Name: "profile_id.start", S1: profile})
	}
	batch, err := events.EncodeBatch(fmt.Sprint("b", w.sent), evs)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err := w.client.Publish(t.Context(), topics.UpTopic(rex, topics.DAS), 1, false, batch); err != nil {
			t.Fatal(err)
		}
		switch a := testwait.For(t, w.acks, "the acknowledgement of "+words[0]); a.Status {
		case ack.Stored:
			return
		case ack.RetryAfter: // whose the robot is, or what they allow, changed while it came
		default:
			t.Fatalf("%v: %+v", words, a)
		}
	}
}

// plant has the owner of rex leave words everywhere.
func (w *wired) plant(t *testing.T, p *person) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.as(t, p.token, "PATCH", "/v1/my/robots/"+string(rex), map[string]string{"name": p.word("robot")})
	for doc, field := range map[jdocs.Name]string{jdocs.AccountSettings: "nickname", jdocs.RobotSettings: "default_location"} {
		w.as(t, p.token, "PATCH", "/v1/things/"+string(rex)+"/jdocs/"+string(doc), map[string]any{"set": map[string]any{field: p.word(field)}, "force": true})
	}
	w.as(t, p.token, "PATCH", "/v1/things/"+string(rex)+"/jdocs/"+string(jdocs.AccountSettings), map[string]any{"set": map[string]any{"data_collection": true}})
	w.send(t, p.profile, p.word("event-one"), p.word("event-two"))
	w.send(t, p.profile, p.word("event-three"))
	grant := sts.Grant{Thing: rex, User: p.id, Prefix: sts.DefaultPrefix}
	var log bytes.Buffer
	z := gzip.NewWriter(&log)
	_, _ = fmt.Fprintf(z, "a line of %s\n", p.word("log")) // memory
	must(z.Close())
	name := p.word("-name") + ".log.gz"
	key := grant.Stored(grant.Folder() + name)
	must(w.base.Blobs.Put(ctx, key, bytes.NewReader(log.Bytes()), int64(log.Len()), blob.PutOptions{}))
	must(w.uploads.Logs.Uploaded(ctx, grant, key, name, int64(log.Len())))
	for _, row := range []struct {
		sql  string
		args []any
	}{
		{`UPDATE registry_thing SET present = true, since = now(), lease_until = now() + interval '1 hour' WHERE thing = $1`, []any{rex}},
		{`INSERT INTO vitals_sample (thing, every, at, volts, problems) VALUES ($1, 3600, date_trunc('hour', now()), 3.625, 0) ON CONFLICT DO NOTHING`, []any{rex}},
		{`INSERT INTO speech_session (thing, at, session, kind, language, firmware, encoding, recognizer, intent, confidence, failed, why, audio_ms, took_ms, skip_das)
			VALUES ($1, now(), 's1', 'intent', 'en-US', '', 'pcm', '', '', 0, 'match', $2, 1, 1, false)`, []any{rex, p.word("why")}},
		{`INSERT INTO intent_custom (thing, name, phrases, languages, reaction, overrides, created, by_whom) VALUES ($1, $2, ARRAY['call ' || $2::text], '{}', '', '{}', now(), 'staff')`, []any{rex, p.word("friend")}},
		{`INSERT INTO motion_file (thing, name, sha256, file, judged, verdict) VALUES ($1, 'hop', '', convert_to($2, 'UTF8'), true, json_build_object('v', 1, 'name', 'hop', 'why', $2::text)::text)
			ON CONFLICT (thing, name) DO UPDATE SET uploaded = now(), file = excluded.file, verdict = excluded.verdict`, []any{rex, p.word("motion")}},
		{`INSERT INTO registry_step (thing, name, ok, code, first, last, times, peer, version, detail) VALUES ($1, 'test', true, '', now(), now(), 1, $2, '', '') ON CONFLICT (thing, name, ok, code) DO UPDATE SET peer = excluded.peer, last = excluded.last`, []any{rex, p.word("peer")}},
		{`INSERT INTO webhook_hook (id, url, kinds, filter, secret, note, by_whom, created, disabled) VALUES ('00000000-0000-4000-8000-000000000001', 'https://example.org', '{}', '', '', '', 'staff', now(), now()) ON CONFLICT DO NOTHING`, nil},
		{`INSERT INTO webhook_delivery (hook, event, kind, thing, body, created, state, next_at) VALUES ('00000000-0000-4000-8000-000000000001', gen_random_uuid(), 'problem.raised', $1, convert_to(json_build_object('says', $2::text)::text, 'UTF8'), now(), 'done', now())`,
			[]any{rex, p.word("hook")}},
	} {
		_, err := w.base.Pool.Exec(ctx, row.sql, row.args...)
		must(err)
	}
	talks := answerspg.New(w.base.Pool)
	must(talks.Set(ctx, rex, p.id, answers.Choice{Asks: true, Persona: p.word("persona"), Remember: true}, time.Now()))
	must(talks.Keep(ctx, rex, p.id, knowledge.Turn{At: time.Now(), Asked: p.word("asked"), Said: p.word("told")}))
	crashes, err := crash.New(crash.Config{Store: crashpg.New(w.base.Pool), Objects: w.base.Blobs, Log: w.base.Log})
	must(err)
	_, err = crashes.Take(ctx, crash.Report{Thing: rex, Name: p.word("dump"), Program: "vic-anim", OSVersion: "1.0", At: time.Now(), Dump: []byte("kennel-crash 1\nprogram: vic-anim\n\npanic: " + p.word("memory") + "\n\ngoroutine 1 [running]:\nmain." + p.word("call") + "()\n\t/src/main.go:7 +0x1\n"), Log: []byte(p.word("lastline")), Told: true})
	must(err)
	must(tokenpg.New(w.base.Pool).Associate(ctx, token.Association{Thing: rex, User: p.id, First: token.Token{ID: uuid.NewString(), How: "associate", Issued: time.Now(), Expires: time.Now().Add(time.Hour)}}))
	w.as(t, p.token, "POST", "/v1/things/"+string(rex)+"/commands", map[string]any{"kind": commandwire.RobotDo, "args": commandwire.Do{Line: p.word("line")}})
	w.as(t, p.token, "PUT", "/v1/my/robots/"+string(rex)+"/audio", map[string]bool{"keep": true})
	_, err = w.base.Pool.Exec(ctx, `INSERT INTO ota_choice (thing, release, now, until, chosen) VALUES ($1, $2, false, now() + interval '1 day', now()) ON CONFLICT (thing) DO UPDATE SET release = excluded.release, chosen = excluded.chosen`, rex, p.word("release"))
	must(err)
	heard := voice.Prefix + rex.Slug() + "/" + time.Now().UTC().Format("20060102T150405.000Z") + "-" + p.word("session") + ".wav"
	sound := p.word("audio")
	must(w.base.Blobs.Put(ctx, heard, strings.NewReader(sound), int64(len(sound)), blob.PutOptions{}))
	must(w.Accounts.Audit.Append(ctx, audit.Entry{Actor: "staff", Action: "test", Object: string(rex), Detail: strings.ToUpper(p.email) + " asked, account " + p.id}))
	w.get(t, "POST", "/v1/my/robots/claim", `{"code":"0000-0000"}`, "Content-Type", "application/json", "Authorization", "Bearer "+p.token) // in vain
	w.as(t, p.token, "POST", "/v1/my/robots/"+string(rex)+"/transfer", map[string]string{"to": "heir@example.org", "password": password})
}

// export returns the files of a person's export, unpacked.
func (w *wired) export(t *testing.T, p *person) map[string][]byte {
	t.Helper()
	code, whole := w.get(t, "GET", "/v1/account/export", "", "Authorization", "Bearer "+p.token)
	arch, err := zip.NewReader(strings.NewReader(whole), int64(len(whole)))
	if err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	out := map[string][]byte{}
	for _, f := range arch.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		out[f.Name] = append([]byte(f.Name+"\n"), unpacked(b)...)
	}
	return out
}

// erase has a person leave.
func (w *wired) erase(t *testing.T, p *person) {
	t.Helper()
	if err := w.Accounts.Privacy.Delete(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: p.id}), account.ID(p.id), password, p.home); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, 2*testwait.Long, "the account is gone", func() error {
		var n int
		if err := w.base.Pool.QueryRow(t.Context(), `SELECT count(*) FROM account_account WHERE id = $1`, p.id).Scan(&n); err != nil || n > 0 {
			return fmt.Errorf("%d accounts, %v", n, err)
		}
		return nil
	})
}

// TestErasureLeavesNothing plants a person in every store, with words of their own, and has them leave. Before, the export has every word.
// Afterwards no table and no object has one, nor the account's id in any form, while what the robot sent without an owner is as it was.
func TestErasureLeavesNothing(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(registrypg.New(w.base.Pool, w.base.Log).Register(ctx, rex))
	w.send(t, "", "ownerless-before")
	ada := w.person(t, "ada")
	_, _, err := ownerpg.New(w.base.Pool).Begin(ctx, rex, ada.id, owner.HowCode, false)
	must(err)
	w.plant(t, ada)
	_, err = w.base.Pool.Exec(ctx, `INSERT INTO intent_custom (thing, name, phrases, languages, reaction, overrides, created, by_whom) VALUES ($1, 'older', '{"ownerless older"}', '{}', '', '{}', now() - interval '1 day', 'staff')`, rex)
	must(err)
	words, id, profile := append(ada.words, ada.email), ada.id, ada.profile
	before := w.stores(t)
	for _, word := range append(slices.Clone(words), id) {
		if len(holding(before, word)) == 0 {
			t.Fatalf("%s is nowhere even now: this test looks in the wrong places", word)
		}
	}
	for where, word := range map[string]string{"das_event": "plantedadaevent-one", "s3 das/": "plantedadaevent-one", "s3 logs/": "plantedadalog", "account_audit": id, "owner_tenure": id} {
		if !slices.ContainsFunc(holding(before, word), func(s string) bool { return strings.HasPrefix(s, where) }) {
			t.Errorf("%s does not hold %s even now", where, word)
		}
	}
	// In the database no profile leads to the account.
	tables := map[string][]byte{}
	for where, b := range before {
		if !strings.HasPrefix(where, "s3 ") {
			tables[where] = b
		}
	}
	if found := holding(tables, forms(profile)...); len(found) > 0 {
		t.Errorf("the profile id is stored as it came: %q", found)
	}

	// The export has it all.
	export := w.export(t, ada)
	for _, word := range append(slices.Clone(words), profile, "3.625") {
		if len(holding(export, word)) == 0 {
			t.Errorf("the export lacks %s", word)
		}
	}
	if found := holding(export, "ownerless"); len(found) > 0 {
		t.Errorf("the export has what is not the person's: %q", found)
	}

	// They leave.
	w.erase(t, ada)
	w.send(t, "", "ownerless-after")
	after := w.stores(t)
	if found := holding(after, slices.Concat(words, forms(id), forms(profile))...); len(found) > 0 {
		t.Errorf("left after the erasure:\n%s", strings.Join(found, "\n"))
	}
	if found := holding(after, "ownerless older"); len(found) != 1 {
		t.Errorf("a custom intent of before the person is in %q", found)
	}
	for _, word := range []string{"ownerless-before", "ownerless-after"} {
		if found := holding(after, word); len(found) != 2 {
			t.Errorf("%s is in %q, want an event and a raw object", word, found)
		}
	}
	var curves int
	must(w.base.Pool.QueryRow(ctx, `SELECT count(*) FROM vitals_sample WHERE volts = 3.625`).Scan(&curves))
	if curves > 0 {
		t.Errorf("%d samples of curves are left", curves)
	}
	if r, err := w.Accounts.Audit.Verify(ctx, audit.Anchor{}); err != nil || !r.Done {
		t.Errorf("audit log: %+v %+v, %v", r, r.Broken, err)
	}
	var record string
	err = w.base.Pool.QueryRow(ctx, `SELECT asked_by || ' ' || (finished_at IS NOT NULL) || ' ' || erased FROM account_erasure`).Scan(&record)
	for _, want := range []string{"owner true", `"events": 5`, `"raw batches": 2`, `"uploaded logs": 1`, `"samples of curves": 1`, `"voice sessions": 1`} {
		if !strings.Contains(record, want) {
			t.Errorf("the record of the erasure says %s (%v), want %s", record, err, want)
		}
	}
	// A process that was late writes more of the same time. A while later that goes too, and with it the last note of the erasure.
	for _, sql := range []string{`INSERT INTO das_event (received, grp, thing, boot_id, seq, ts, uptime_ms, unsynced, level, source, robot_version, profile_id, feature_type, feature_run_id, event, s1)
			SELECT until - interval '1 millisecond', 1, thing, 'boot', 999, 0, 0, false, 'info', '', '', '', '', '', 'test.word', 'plantedevent-late' FROM das_erased`,
		`INSERT INTO vitals_sample (thing, every, at, volts, problems) SELECT thing, 3600, date_trunc('hour', since), 3.625, 0 FROM das_erased`,
		`UPDATE das_erased SET added = added - interval '1 hour'`} {
		if tag, err := w.base.Pool.Exec(ctx, sql); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(tag, err)
		}
	}
	w.sweep(t)
	var late int
	must(w.base.Pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM vitals_sample WHERE volts = 3.625) + (SELECT count(*) FROM das_erased)`).Scan(&late))
	if late > 0 {
		t.Errorf("%d samples and notes are left", late)
	}
	words = append(words, "plantedevent-late")
	if found := holding(w.stores(t), slices.Concat(words, forms(id), forms(profile))...); len(found) > 0 {
		t.Errorf("left after everything was joined:\n%s", strings.Join(found, "\n"))
	}
}

// sweep runs the periodic work of the archive once more.
func (w *wired) sweep(t *testing.T) {
	t.Helper()
	for _, j := range w.slices.Jobs() {
		if strings.HasPrefix(j.Name, "das.") {
			if err := j.Run(t.Context()); err != nil {
				t.Errorf("%s: %v", j.Name, err)
			}
		}
	}
}

// TestNextOwner: the custom intents that a robot got while it was a person's go when that person lets go of it; those of before and after stay (issue 19).
func TestNextOwner(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	const email, password = "first.owner@example.org", "correct horse battery staple"
	ada, _, err := w.Accounts.People.CreateAccount(ctx, email, auth.Owner, password)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ownerpg.New(w.base.Pool).Begin(ctx, rex, string(ada.ID), "code", false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.base.Pool.Exec(ctx, `INSERT INTO intent_custom (thing, name, phrases, languages, reaction, overrides, created, by_whom)
		SELECT $1, x.name, '{"call ben"}', '{}', '', '{}', now() - x.ago, 'staff' FROM (VALUES ('hers', interval '0'), ('older', interval '1 day'), ('newer', interval '-1 hour')) x(name, ago)`, rex); err != nil {
		t.Fatal(err)
	}
	_, said := w.get(t, "POST", "/v1/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), "Content-Type", "application/json")
	var login struct{ Token string }
	if err := json.Unmarshal([]byte(said), &login); err != nil {
		t.Fatal(said, err)
	}
	if code, said := w.get(t, "DELETE", "/v1/my/robots/"+string(rex), "", "Authorization", "Bearer "+login.Token); code/100 != 2 {
		t.Fatal(code, said)
	}
	testwait.Until(t, testwait.Long, "only the custom intents of before and after are left", func() error {
		var names string
		err := w.base.Pool.QueryRow(ctx, `SELECT string_agg(name, ' ' ORDER BY name) FROM intent_custom`).Scan(&names)
		if err == nil && names != "newer older" {
			err = fmt.Errorf("%s are left", names)
		}
		return err
	})
}
