package intake_test

import (
	"slices"
	"testing"

	"kennel/infra/api/files"
	"kennel/infra/pg/pgtest"
)

// TestNothingHalf: while the object store, the database or this machine's disk takes nothing, each form is told to come again, and what comes again is stored
// once; no row is without its object, and an object without a row gets one.
func TestNothingHalf(t *testing.T) {
	r := newRig(t)
	forms := map[string]string{"log": putLog(files.Log(logName), "x"), "crash": postCrash(crashPath, crashForm(dumpText)), "events": post(sendForm(zipped(array(event(1, "robot.boot", "")))))}
	later := func(what string, of ...string) {
		for _, form := range of {
			resp, body := r.raw(t, forms[form])
			want(t, what+": "+form, resp, body, 503, "")
		}
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir+"/missing")
	later("no room on this machine", "log")
	t.Setenv("TMPDIR", dir)
	r.s3Away.Store(true)
	later("S3 is away", "log", "crash")
	if n := r.objects(t); n+len(r.names(t))+len(r.crashed(t)) != 0 {
		t.Errorf("%d objects, logs %q, crashes %v", n, r.names(t), r.crashed(t))
	}
	r.s3Away.Store(false)
	r.torn.Store(true)
	later("no row", "log")
	if names, n := r.names(t), r.objects(t); len(names) != 0 || n != 1 {
		t.Errorf("rows %q, %d objects", names, n)
	}
	r.torn.Store(false)
	if added, removed, err := r.logs.Mend(t.Context()); added != 1 || removed != 0 || err != nil {
		t.Errorf("%d rows added, %d removed, %v", added, removed, err)
	}
	if names := r.names(t); !slices.Equal(names, []string{logName}) {
		t.Errorf("mended as %q", names)
	}
	if _, err := r.pool.Exec(t.Context(), `ALTER TABLE das_event RENAME TO das_away`); err != nil {
		t.Fatal(err)
	}
	later("no table", "events")
	if _, err := r.pool.Exec(t.Context(), `ALTER TABLE das_away RENAME TO das_event`); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{pgtest.DiskFull, "58030"} { // no space, and a disk that does not answer (issue 34, must hold 1)
		end := pgtest.Refuse(t, r.pool, code)
		later(code, "log", "crash", "events")
		end()
	}
	for form, request := range forms {
		for {
			resp, body := r.raw(t, request)
			if resp.StatusCode == 503 { // it was told when to come again; the ingester lets one through each second
				continue
			}
			want(t, "again: "+form, resp, body, 200, "")
			break
		}
	}
	if names, crashes, rows := r.names(t), r.crashed(t), r.rows(t); !slices.Equal(names, []string{logName}) || len(crashes) != 1 || len(rows) != 1 {
		t.Errorf("logs %q, crashes %v, events %v", names, crashes, rows)
	}
}
