package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/cloud/app"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/preflight"
	"kennel/cloud/preflight/preflightpg"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/migrations"
	"kennel/infra/onebox"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/secretbox"
)

// drillEvents is how many events a drill restores: tens of thousands, in a soak ten millions. KENNEL_DRILL_EVENTS says another number.
func drillEvents() int {
	if n, err := strconv.Atoi(os.Getenv("KENNEL_DRILL_EVENTS")); err == nil {
		return n
	}
	if os.Getenv("KENNEL_SOAK") != "" {
		return 10_000_000
	}
	return 20_000
}

// maxDrillMemory bounds this process whatever the size of the backup, in bytes: 10 million events are more than 2 GB.
const maxDrillMemory = 400 << 20

func TestMain(m *testing.M) { pgtest.Main(m) }

// stocked makes the data folder of an instance with events, audit lines, authorities, and one uploaded log with its object.
func stocked(t *testing.T, events int) (dir string) {
	t.Helper()
	work, err := os.MkdirTemp("", "kennel-drill-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	if err := os.Chmod(work, 0o711); err != nil { // Postgres runs under another account
		t.Fatal(err)
	}
	dir = filepath.Join(work, "data")
	inst, err := onebox.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, err = inst.Secret("postgres")
	object := filepath.Join(inst.Paths.S3, "objects", "kennel", "logs", "one.log")
	if err := errors.Join(err, inst.Close(), os.MkdirAll(filepath.Dir(object), 0o700), os.WriteFile(object, []byte("a log"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Init(inst.Paths.CA); err != nil {
		t.Fatal(err)
	}
	inDatabase(t, dir, func(pool *pgxpool.Pool) {
		stock(t, pool, events)
	})
	return dir
}

// stock fills a database with events, audit lines, and one uploaded log.
func stock(t *testing.T, pool *pgxpool.Pool, events int) {
	t.Helper()
	ctx := t.Context()
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Migrate(ctx, pool); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := daspg.Open(pool).EnsurePartitions(ctx, now); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `INSERT INTO das_event (received, grp, thing, boot_id, seq, ts, uptime_ms, unsynced, level, source, robot_version, profile_id, feature_type, feature_run_id, event, s1, i1)
		SELECT $1, n / 1000, 'vic:' || lpad(to_hex(n % 5000), 8, '0'), md5((n % 5000)::text), n, n, n, false, 'info', 'vic-engine', '2.0.1.6091', '', '', '', 'robot.something_happened', 'word ' || n, n
		FROM generate_series(1, $2) n`, now, events); err != nil {
		t.Fatal(err)
	}
	lines := audit.New(accountpg.New(pool), nil)
	for range 25 {
		if err := lines.Append(ctx, audit.Entry{Actor: "kenneld", Action: "test", Object: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO uploads_log (key, thing, account, name, size, os, at) VALUES ('logs/one.log', 'vic:00e20100', '', 'one.log', 5, '', now())`); err != nil {
		t.Fatal(err)
	}
}

func inDatabase(t *testing.T, dir string, fn func(*pgxpool.Pool)) {
	t.Helper()
	err := onebox.WithDatabase(t.Context(), dir, slog.New(slog.DiscardHandler), func(db *onebox.Postgres) error {
		pool, err := pg.Open(t.Context(), db.Config())
		if err != nil {
			return err
		}
		defer pool.Close()
		fn(pool)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kenneldRun runs kenneld's backup commands as an operator types them.
func kenneldRun(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "kenneld", Short: "test", Example: "  kenneld backup"}
	none := func(string) string { return "" }
	root.AddCommand(Commands(func(dir string) (string, error) { return dir, nil })...)
	cli.AddOutput(root)
	if problems := cli.Lint(root); len(problems) > 0 {
		t.Error(problems)
	}
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), root, args, none, &stdout, &stderr)
	if code != cli.ExitOK {
		t.Logf("kenneld %s: exit %d: %s", strings.Join(args[:2], " "), code, &stderr)
	}
	if strings.Contains(stdout.String()+stderr.String(), "AGE-SECRET-KEY") {
		t.Error("the private key was printed")
	}
	return stdout.String() + stderr.String(), code
}

// TestRestoreDrill: an encrypted backup is proven into a scratch instance, which is gone afterwards; the result is where the page looks; and what
// was changed, cut off or lost is said with its place.
func TestRestoreDrill(t *testing.T) {
	events := drillEvents()
	dir := stocked(t, events)
	safe, scratch := t.TempDir(), filepath.Join(filepath.Dir(dir), "scratch")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, archive := filepath.Join(safe, "identity"), filepath.Join(safe, "kennel.backup")
	if err := errors.Join(os.WriteFile(identity, []byte(id.String()+"\n"), 0o600), os.Mkdir(scratch, 0o711), os.Chmod(scratch, 0o711),
		os.WriteFile(filepath.Join(dir, recipientsName), []byte("# the safe\n"+id.Recipient().String()+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if out, code := kenneldRun(t, "backup", "-data", dir, "-out", archive); code != cli.ExitOK || !strings.Contains(out, "encrypted, without the root's key") || strings.Contains(out, "not recorded") {
		t.Fatalf("backup: exit %d: %s", code, out)
	}
	saved := time.Since(began)

	drill := func(file string) (r DrillReport, code int) {
		t.Helper()
		out, code := kenneldRun(t, "backup", "drill", "-in", file, "-identity", identity, "-data", dir, "-scratch", scratch, "-o", "json")
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if left, err := os.ReadDir(scratch); len(left) > 0 || err != nil {
			t.Errorf("left in the scratch folder: %v, %v", left, err)
		}
		return r, code
	}
	r, code := drill(archive)
	t.Logf("%d events: archive %d bytes, backup %.1f s, drill %.1f s, peak memory %d MiB", events, r.Bytes, saved.Seconds(), r.Seconds, r.PeakMemory>>20)
	if code != cli.ExitOK || !r.OK || !r.Encrypted || r.Rows < int64(events) || len(r.Checks) != 6 {
		t.Errorf("exit %d, %+v", code, r)
	}
	if r.PeakMemory > maxDrillMemory {
		t.Errorf("peak memory %d MiB for %d events, want at most %d", r.PeakMemory>>20, events, maxDrillMemory>>20)
	}
	inDatabase(t, dir, func(pool *pgxpool.Pool) {
		store := preflightpg.New(pool)
		for _, k := range []preflight.Kind{preflight.Backup, preflight.Drill} {
			if last, err := store.Last(context.Background(), k); err != nil || last.Good.At.Before(began) || !last.Bad.At.IsZero() {
				t.Errorf("recorded of %s: %+v, %v", k, last, err)
			}
		}
	})
	if events > 100_000 { // what follows is about the answers, which do not depend on the size
		return
	}
	t.Run("the root key stays out", func(t *testing.T) {
		back := filepath.Join(filepath.Dir(dir), "back")
		if out, code := kenneldRun(t, "restore", "-in", archive, "-identity", identity, "-data", back); code != cli.ExitOK {
			t.Fatalf("restore: exit %d: %s", code, out)
		}
		if _, err := os.Stat(filepath.Join(back, "ca", "root.key")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("root.key in the restored instance: %v", err)
		}
		if _, err := os.Stat(filepath.Join(back, "ca", "device.key")); err != nil {
			t.Error(err)
		}
	})
	t.Run("no key, no answer", func(t *testing.T) {
		if out, code := kenneldRun(t, "restore", "-in", archive, "-data", filepath.Join(safe, "x")); code != cli.ExitUsage || !strings.Contains(out, "encrypted") {
			t.Errorf("exit %d: %s", code, out)
		}
	})
	t.Run("damage", func(t *testing.T) { drillsOfDamage(t, dir, archive, drill) })
}

// drillsOfDamage drills what is not a good backup any longer.
func drillsOfDamage(t *testing.T, dir, archive string, drill func(string) (DrillReport, int)) {
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 4
	for name, b := range map[string][]byte{"changed": changed, "cut off": whole[:len(whole)*2/3]} {
		file := archive + ".damaged"
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, code := drill(file); code != cli.ExitFailed || r.OK || !strings.Contains(r.Says, name) || !strings.Contains(r.Says, "before byte") {
			t.Errorf("%s: exit %d, %+v", name, code, r)
		}
	}
	inDatabase(t, dir, func(pool *pgxpool.Pool) {
		if last, err := preflightpg.New(pool).Last(context.Background(), preflight.Drill); err != nil || last.Bad.At.Before(last.Good.At) {
			t.Errorf("a failed drill is not recorded: %+v, %v", last, err)
		}
		// A line of the audit log that was changed with the database's rights, and a log whose object is gone.
		if _, err := pool.Exec(context.Background(), `ALTER TABLE account_audit DISABLE TRIGGER ALL; UPDATE account_audit SET detail = 'other' WHERE seq = 7;
			ALTER TABLE account_audit ENABLE TRIGGER ALL`); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Remove(filepath.Join(dir, "s3", "objects", "kennel", "logs", "one.log")); err != nil {
		t.Fatal(err)
	}
	if out, code := kenneldRun(t, "backup", "-data", dir, "-out", archive+"2"); code != cli.ExitOK {
		t.Fatalf("backup: exit %d: %s", code, out)
	}
	r, code := drill(archive + "2")
	said := map[string]string{}
	for _, c := range r.Checks {
		if !c.OK {
			said[c.Name] = c.Says
		}
	}
	if code != cli.ExitFailed || len(said) != 2 || !strings.Contains(said["audit"], "line 7") || !strings.Contains(said["objects"], "logs/one.log") {
		t.Errorf("exit %d, failed %v", code, said)
	}
}

// TestServeInstallation (issue 16, finding 9): an installation with a Postgres and an S3 of its own is saved, drilled, and restored into others.
func TestServeInstallation(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	settings := func(name string) (file string, cfg app.Config, pool *pgxpool.Pool) {
		t.Helper()
		cfg, pool = app.Defaults(), pgtest.NewEmpty(t)
		cfg.Postgres.DSN, cfg.S3, cfg.CA.Dir = pool.Config().ConnString(), blobtest.Config(t), filepath.Join(dir, name)
		file = filepath.Join(dir, name+".yaml")
		text, err := json.Marshal(map[string]any{ // JSON is YAML
			"postgres": map[string]any{"dsn": cfg.Postgres.DSN},
			"s3": map[string]any{"endpoint": cfg.S3.Endpoint, "bucket": cfg.S3.Bucket, "path_style": cfg.S3.PathStyle, "access_key_file": cfg.S3.AccessKeyFile,
				"secret_key_file": cfg.S3.SecretKeyFile},
			"mqtt": map[string]any{"url": "ssl://localhost:8884"}, "ca": map[string]any{"dir": cfg.CA.Dir}})
		if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return file, cfg, pool
	}
	file, cfg, pool := settings("first")
	stock(t, pool, 500)
	if _, err := ca.Init(cfg.CA.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := secretbox.Init(cfg.CA.SealPath()); err != nil {
		t.Fatal(err)
	}
	objects, err := blob.Open(ctx, cfg.S3)
	if err == nil {
		err = errors.Join(objects.EnsureBucket(ctx), objects.Put(ctx, "logs/one.log", strings.NewReader("a log"), 5, blob.PutOptions{ContentType: "text/plain", Metadata: map[string]string{"name": "b25l"}}))
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	identity, archive := filepath.Join(dir, "identity"), filepath.Join(dir, "kennel.backup")
	if err := errors.Join(err, os.WriteFile(identity, []byte(id.String()+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, code := kenneldRun(t, "backup", "-config", file, "-out", archive, "-recipient", id.Recipient().String()); code != cli.ExitOK || strings.Contains(out, "not recorded") {
		t.Fatalf("backup: exit %d: %s", code, out)
	}
	var r DrillReport
	out, code := kenneldRun(t, "backup", "drill", "-in", archive, "-identity", identity, "-config", file, "-o", "json")
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&r); err != nil || code != cli.ExitOK || !r.OK || !r.Encrypted || r.Rows < 500 || len(r.Checks) != 6 {
		t.Fatalf("drill: exit %d, %+v, %v", code, r, err)
	}
	for _, k := range []preflight.Kind{preflight.Backup, preflight.Drill} {
		if last, err := preflightpg.New(pool).Last(ctx, k); err != nil || last.Good.At.IsZero() || !last.Bad.At.IsZero() {
			t.Errorf("recorded of %s: %+v, %v", k, last, err)
		}
	}
	if out, code := kenneldRun(t, "restore", "-in", archive, "-identity", identity, "-data", filepath.Join(dir, "x")); code == cli.ExitOK || !strings.Contains(out, "-config") {
		t.Errorf("into a folder: exit %d: %s", code, out)
	}
	if out, code := kenneldRun(t, "restore", "-in", archive, "-identity", identity, "-config", file); code == cli.ExitOK || !strings.Contains(out, "tables") {
		t.Errorf("into a database that is in use: exit %d: %s", code, out)
	}

	again, back, restored := settings("second")
	if out, code := kenneldRun(t, "restore", "-in", archive, "-identity", identity, "-config", again); code != cli.ExitOK {
		t.Fatalf("restore: exit %d: %s", code, out)
	}
	var events int
	if err := restored.QueryRow(ctx, "SELECT count(*) FROM das_event").Scan(&events); err != nil || events != 500 {
		t.Errorf("%d events, %v", events, err)
	}
	if objects, err = blob.Open(ctx, back.S3); err != nil {
		t.Fatal(err)
	}
	if o, err := objects.Head(ctx, "logs/one.log"); err != nil || o.Size != 5 || o.ContentType != "text/plain" || o.Metadata["name"] != "b25l" {
		t.Errorf("the log: %+v, %v", o, err)
	}
	a, err := ca.Load(back.CA.Dir)
	if err != nil || a.RootName() == "" {
		t.Error("authorities:", err)
	}
	if _, err := secretbox.Load(back.CA.SealPath()); err != nil {
		t.Error(err)
	}
}

// TestDrillComparesRows: a table that does not hold what the backup says is named, be it one row less or one letter that differs.
func TestDrillComparesRows(t *testing.T) {
	ctx, pool := t.Context(), pgtest.New(t)
	count := func() (got map[string]onebox.Table) {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) { got, err = onebox.Tables(ctx, tx); return err })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	exec := func(sql string) {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO ready_record (kind, ok, at, says) VALUES ('mail', true, '2026-01-01', 'a'), ('mail', false, '2026-01-01', 'b')`)
	s := onebox.Scratch{Manifest: onebox.Manifest{Tables: count()}}
	var r DrillReport
	if says, err := r.rows(ctx, pool, s); err != nil || r.Rows < 2 {
		t.Errorf("the same: %s, %v, %d rows", says, err, r.Rows)
	}
	for name, sql := range map[string]string{"a letter": `UPDATE ready_record SET says = 'c' WHERE ok`, "a row": `DELETE FROM ready_record WHERE ok`} {
		exec(sql)
		if _, err := r.rows(ctx, pool, s); errs.KindOf(err) != errs.Corrupt || !strings.Contains(err.Error(), "public.ready_record") {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}
