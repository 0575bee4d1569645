package backup

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs/ca"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/page"
	"kennel/infra/agefile"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/migrations"
	"kennel/infra/onebox"
	"kennel/infra/pg"
)

// DrillReport holds the findings of a restore drill.
type DrillReport struct {
	Backup     string       `json:"backup"`
	Bytes      int64        `json:"bytes"`
	Created    time.Time    `json:"created"`
	Encrypted  bool         `json:"encrypted"`
	Started    time.Time    `json:"started"`
	Seconds    float64      `json:"seconds"`
	Rows       int64        `json:"rows"`
	PeakMemory int64        `json:"peak_memory"` // of this process since its start, in bytes
	OK         bool         `json:"ok"`
	Says       string       `json:"says"` // a sentence
	Checks     []DrillCheck `json:"checks"`
}

// DrillCheck is one thing that a drill looked at.
type DrillCheck struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
}

// Drill restores the backup in file below scratch ("": the folder for temporary files), checks it and removes what it restored. A backup that cannot be restored is a
// report that is not OK.
func Drill(ctx context.Context, file, scratch string, ids agefile.Identities, log *slog.Logger) DrillReport {
	r := DrillReport{Backup: file, Started: time.Now().UTC(), Checks: []DrillCheck{}}
	if fi, err := os.Stat(file); err == nil {
		r.Bytes = fi.Size()
	}
	err := onebox.Drill(ctx, file, scratch, ids, log, func(ctx context.Context, s onebox.Scratch) error {
		r.Created, r.Encrypted = s.Manifest.Created, s.Encrypted
		r.add("restore", nil, fmt.Sprintf("%d files were restored, and each has the SHA-256 that the backup says", len(s.Manifest.Members)))
		return r.look(ctx, s)
	})
	if err != nil {
		r.add("restore", err, "")
	}
	r.Seconds = time.Since(r.Started).Seconds()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err == nil {
		r.PeakMemory = use.Maxrss << 10
	}
	bad := slices.IndexFunc(r.Checks, func(c DrillCheck) bool { return !c.OK })
	if r.OK = bad < 0; r.OK {
		r.Says = fmt.Sprintf("The backup of %s was restored in %.0f s: %d rows.", r.Created.Format("2006-01-02 15:04 UTC"), r.Seconds, r.Rows)
	} else {
		r.Says = page.Sentence(r.Checks[bad].Says)
	}
	return r
}

func (r *DrillReport) add(name string, err error, says string) {
	if err != nil {
		says = errs.Public(err)
		if errs.KindOf(err) == errs.Internal {
			says = err.Error() // the person who runs the drill also mends it
		}
	}
	r.Checks = append(r.Checks, DrillCheck{name, err == nil, says})
}

// look makes the checks, each whether or not the one before succeeded.
func (r *DrillReport) look(ctx context.Context, s onebox.Scratch) error {
	pool, err := pg.Open(ctx, s.Postgres.Config())
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, c := range []struct {
		name string
		look func(context.Context, *pgxpool.Pool, onebox.Scratch) (string, error)
	}{{"rows", r.rows}, {"migrations", migrated}, {"audit", chained}, {"authorities", authorities}, {"objects", objects}} {
		says, err := c.look(ctx, pool, s)
		r.add(c.name, err, says)
	}
	return nil
}

// rows compares what each table holds with what it held when the backup was made; before migrations change it.
func (r *DrillReport) rows(ctx context.Context, pool *pgxpool.Pool, s onebox.Scratch) (string, error) {
	var got map[string]onebox.Table
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) { got, err = onebox.Tables(ctx, tx); return err })
	if err != nil {
		return "", err
	}
	for _, t := range got {
		r.Rows += t.Rows
	}
	want := s.Manifest.Tables
	if want == nil {
		return fmt.Sprintf("%d tables hold %d rows; the backup is of an older version and does not say how many there were", len(got), r.Rows), nil
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w, g := want[name], got[name]; w != g {
			return "", errs.New(errs.Corrupt, "table %s holds %d rows with checksum %s, want %d with %s", name, g.Rows, g.Sum, w.Rows, w.Sum)
		}
	}
	if len(got) != len(want) {
		return "", errs.New(errs.Corrupt, "%d tables, want %d", len(got), len(want))
	}
	return fmt.Sprintf("%d tables hold the %d rows of the moment of the backup, with the same checksums", len(got), r.Rows), nil
}

func migrated(ctx context.Context, pool *pgxpool.Pool, _ onebox.Scratch) (string, error) {
	n, err := pg.Migrate(ctx, pool, migrations.FS)
	if err != nil {
		return "", err
	}
	if _, err := jobs.Migrate(ctx, pool); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d migrations of this version were applied", n), nil
}

// chained computes the chain of the audit log again, from its first line.
func chained(ctx context.Context, pool *pgxpool.Pool, _ onebox.Scratch) (string, error) {
	lines := audit.New(accountpg.New(pool), nil)
	for n, from := 0, (audit.Anchor{}); ; {
		got, err := lines.Verify(ctx, from)
		switch {
		case err != nil:
			return "", err
		case got.Broken != nil:
			return "", errs.New(errs.Corrupt, "the audit log is broken at line %d: %s", got.Broken.Seq, got.Broken.Why)
		}
		if n, from = n+got.Checked, got.To; got.Done {
			return fmt.Sprintf("the audit log is a whole chain of %d lines", n), nil
		}
	}
}

// authorities reads the certificate authorities, which checks that the root vouches for each and that keys belong to certificates.
func authorities(_ context.Context, _ *pgxpool.Pool, s onebox.Scratch) (string, error) {
	a, err := ca.Load(s.Paths.CA)
	if err != nil {
		return "", err
	}
	all := a.Authorities()
	for _, x := range all {
		if time.Now().After(x.NotAfter) {
			return "", errs.New(errs.Corrupt, "the authority %s ended on %s", x.Name, x.NotAfter.Format(time.DateOnly))
		}
	}
	root := "not in it, as it should be"
	if s.Manifest.RootKey {
		root = "in it"
	}
	return fmt.Sprintf("%d authorities, each with its key, below %s; the root's key is %s", len(all), a.RootName(), root), nil
}

// objectsTop is where the gateway keeps the objects of a bucket, with the bucket's name behind it.
const objectsTop = "s3/objects/"

// objects looks for the object of each uploaded log that the database speaks of.
func objects(ctx context.Context, pool *pgxpool.Pool, s onebox.Scratch) (string, error) {
	there := map[string]bool{}
	for name := range s.Manifest.Members {
		if rest, ok := strings.CutPrefix(name, objectsTop); ok {
			_, key, _ := strings.Cut(rest, "/")
			there[key] = true
		}
	}
	n, lost, first := 0, 0, ""
	var key string
	rows, err := pool.Query(ctx, "SELECT key FROM uploads_log ORDER BY key")
	if err != nil {
		return "", err
	}
	_, err = pgx.ForEachRow(rows, []any{&key}, func() error {
		if n++; !there[key] {
			if lost++; first == "" {
				first = key
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if lost > 0 {
		return "", errs.New(errs.Corrupt, "%d of %d uploaded logs have no object, such as %s", lost, n, first)
	}
	return fmt.Sprintf("%d objects, among them those of all %d uploaded logs", len(there), n), nil
}

func (r DrillReport) table(t *cli.Table) {
	t.Row("CHECK", "RESULT", "FOUND")
	for _, c := range r.Checks {
		result := "ok"
		if !c.OK {
			result = "failed"
		}
		t.Row(c.Name, result, c.Says)
	}
	t.Text(r.Says)
}
