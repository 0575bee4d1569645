package app

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/account"
	"kennel/cloud/account/audit"
	"kennel/cloud/owner/ownerpg"
	"kennel/cloud/sts"
	"kennel/cloud/voice"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/testwait"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
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

// TestErasureLeavesNothing plants a person in every store, with words of their own, and has them leave. Before, the export has every word.
// Afterwards no table and no object has one, nor the account's id in any form, while what the robot sent without an owner is as it was.
func TestErasureLeavesNothing(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	const email, password = "planted.mail@example.org", "correct horse battery staple"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	api := func(token, method, path string, body any) string {
		t.Helper()
		b, err := json.Marshal(body)
		must(err)
		code, said := w.get(t, method, path, string(b), "Content-Type", "application/json", "Authorization", "Bearer "+token)
		if code/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, code, said)
		}
		return said
	}
	var seq uint64
	send := func(profile string, words ...string) {
		t.Helper()
		var evs []events.Event
		for _, word := range words {
			seq++
			evs = append(evs, events.Event{Seq: seq, Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", ProfileID: profile, Name: "test.word", S1: word})
		}
		if profile != "" {
			seq++
			evs = append(evs, events.Event{Seq: seq, Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", ProfileID: profile, Name: "profile_id.start", S1: profile})
		}
		batch, err := events.EncodeBatch(fmt.Sprint("b", seq), evs)
		must(err)
		must(w.client.Publish(ctx, topics.UpTopic(rex, topics.DAS), 1, false, batch))
		if a := testwait.For(t, w.acks, "the acknowledgement of "+words[0]); a.Status != ack.Stored {
			t.Fatalf("%v: %+v", words, a)
		}
	}
	send("", "ownerless-before")

	// The person, and what they leave everywhere.
	ada, _, err := w.Accounts.People.CreateAccount(ctx, email, auth.Owner, password)
	must(err)
	id := string(ada.ID)
	given, family := "Plantedgiven", "Plantedfamily"
	_, err = w.Accounts.People.Change(ctx, ada.ID, account.Change{Given: &given, Family: &family})
	must(err)
	_, _, err = ownerpg.New(w.base.Pool).Begin(ctx, rex, id, "code", false)
	must(err)
	var login struct{ Token string }
	must(json.Unmarshal([]byte(api("", "POST", "/v1/login", map[string]string{"email": email, "password": password})), &login))
	api(login.Token, "PATCH", "/v1/my/robots/"+string(rex), map[string]string{"name": "Plantedrobot"})
	docs := jdocswire.NewClient(w.robot)
	for name, doc := range map[jdocs.Name]string{jdocs.AccountSettings: `{"data_collection":true,"app_locale":"plantedlocale"}`, jdocs.RobotSettings: `{"default_location":"Plantedville"}`} {
		res, err := docs.Write(ctx, name, jdocs.Doc{FmtVersion: 1, JSON: doc})
		if must(err); res.Status != jdocs.Accepted {
			t.Fatalf("%s: %+v", name, res)
		}
	}
	profile := base64.StdEncoding.EncodeToString([]byte(id))
	send(profile, "plantedevent-one", "plantedevent-two")
	send(profile, "plantedevent-three")
	grant := sts.Grant{Thing: rex, User: id, Prefix: sts.DefaultPrefix}
	var log bytes.Buffer
	z := gzip.NewWriter(&log)
	_, _ = z.Write([]byte("a line of plantedlog\n")) // memory
	must(z.Close())
	key := grant.Stored(grant.Folder() + "planted-name.log.gz")
	must(w.base.Blobs.Put(ctx, key, bytes.NewReader(log.Bytes()), int64(log.Len()), blob.PutOptions{}))
	must(w.uploads.Logs.Uploaded(ctx, grant, key, "planted-name.log.gz", int64(log.Len())))
	_, err = w.base.Pool.Exec(ctx, `INSERT INTO vitals_sample (thing, every, at, volts, problems) VALUES ($1, 3600, date_trunc('hour', now()), 3.625, 0)`, rex)
	must(err)
	_, err = w.base.Pool.Exec(ctx, `INSERT INTO speech_session (thing, at, session, kind, language, firmware, encoding, recognizer, intent, confidence, failed, why, audio_ms, took_ms, skip_das)
		VALUES ($1, now(), 's1', 'intent', 'en-US', '', 'pcm', '', '', 0, 'match', 'plantedwhy', 1, 1, false)`, rex)
	must(err)
	_, err = w.base.Pool.Exec(ctx, `INSERT INTO intent_custom (thing, name, phrases, languages, reaction, overrides, created, by_whom)
		VALUES ($1, 'call', '{"call plantedfriend"}', '{}', '', '{}', now(), 'staff'), ($1, 'older', '{"ownerless older"}', '{}', '', '{}', now() - interval '1 day', 'staff')`, rex)
	must(err)
	api(login.Token, "PUT", "/v1/my/robots/"+string(rex)+"/audio", map[string]bool{"keep": true})
	heard := voice.Prefix + rex.Slug() + "/" + time.Now().UTC().Format("20060102T150405.000Z") + "-plantedsession.wav"
	must(w.base.Blobs.Put(ctx, heard, strings.NewReader("plantedaudio"), 12, blob.PutOptions{}))
	must(w.Accounts.Audit.Append(ctx, audit.Entry{Actor: "staff", Action: "test", Object: string(rex), Detail: "Planted.Mail@example.org asked, account " + id}))

	words := []string{email, given, family, "Plantedrobot", "plantedlocale", "Plantedville", "plantedevent-one", "plantedevent-two", "plantedevent-three", "plantedlog", "planted-name", "plantedwhy", "plantedaudio", "plantedsession", "plantedfriend"}
	before := w.stores(t)
	for _, word := range append(slices.Clone(words), id) {
		if len(holding(before, word)) == 0 {
			t.Fatalf("%s is nowhere even now: this test looks in the wrong places", word)
		}
	}
	for where, word := range map[string]string{"das_event": "plantedevent-one", "s3 das/": "plantedevent-one", "s3 logs/": "plantedlog", "account_audit": id, "owner_tenure": id} {
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
	req, err := http.NewRequestWithContext(ctx, "GET", w.api+"/v1/account/export", nil)
	must(err)
	req.Header.Set("Authorization", "Bearer "+login.Token)
	resp, err := http.DefaultClient.Do(req)
	must(err)
	whole, err := io.ReadAll(resp.Body)
	must(err)
	must(resp.Body.Close())
	arch, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	must(err)
	export := map[string][]byte{}
	for _, f := range arch.File {
		r, err := f.Open()
		must(err)
		b, err := io.ReadAll(r)
		must(err)
		must(r.Close())
		export[f.Name] = unpacked(b)
	}
	for _, word := range append(slices.Clone(words), profile, "3.625") {
		if len(holding(export, word)) == 0 {
			t.Errorf("the export lacks %s", word)
		}
	}
	if found := holding(export, "ownerless"); len(found) > 0 {
		t.Errorf("the export has what is not the person's: %q", found)
	}

	// They leave.
	api(login.Token, "POST", "/v1/account/delete", map[string]string{"password": password})
	testwait.Until(t, 2*testwait.Long, "the account is gone", func() error {
		var n int
		if err := w.base.Pool.QueryRow(ctx, `SELECT count(*) FROM account_account WHERE id = $1`, id).Scan(&n); err != nil || n > 0 {
			return fmt.Errorf("%d accounts, %v", n, err)
		}
		return nil
	})
	send("", "ownerless-after")
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
