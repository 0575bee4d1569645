package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kennel/infra/migrations"
	"kennel/infra/pg"
)

// Several that ask at once get the same stopped cluster, and what an interrupted one left is not taken for it. A server on a copy has what the
// migrations make.
func TestPrepared(t *testing.T) {
	base := t.TempDir()
	key, err := clusterKey()
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(base, key+".half", "PG_VERSION")
	if err := errors.Join(os.Mkdir(filepath.Dir(left), 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	dirs := make([]string, 3)
	var wg sync.WaitGroup
	for i := range dirs {
		wg.Go(func() {
			var err error
			if dirs[i], err = prepare(base); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, dir := range dirs {
		if dir != filepath.Join(base, key) {
			t.Errorf("prepared in %s", dir)
		}
	}
	if _, err := os.Stat(filepath.Join(dirs[0], "postmaster.pid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cluster was not stopped: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of a cluster stays: %v", err)
	}
	s, err := launch(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	if err := s.migrated(); err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(t.Context(), pg.Config{DSN: s.server.DSNOf(template), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n, err := pg.Pending(t.Context(), pool, migrations.FS); err != nil || n != 0 {
		t.Errorf("%d migrations are missing, %v", n, err)
	}
}
