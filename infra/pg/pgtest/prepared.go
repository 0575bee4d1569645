package pgtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kennel/infra/migrations"
	"kennel/infra/pg/pgserver"
)

// prepared returns the folder of a stopped cluster with the migrated template. It is made once per machine, Postgres version and set of
// migrations, because some forty test binaries need a cluster, and copying one takes a tenth of the time of making and migrating it.
// prepared returns "" if none could be made; the tests then make their own and report the error.
func prepared() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir, err := prepare(filepath.Join(cache, "kennel-pgtest"))
	if err != nil {
		return ""
	}
	return dir
}

// prepare is prepared below base. If several test binaries ask at the same time, one makes the cluster and the others wait.
func prepare(base string) (string, error) {
	key, err := clusterKey()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	dir := filepath.Join(base, key)
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return dir, nil
	}
	sweep(base)
	s, err := launch("")
	if err != nil {
		return "", err
	}
	err = s.migrate()
	s.stop()
	if err = errors.Join(err, <-s.ended); err == nil {
		half := dir + ".half" // ours alone, because we hold the lock; sweep has removed leftovers
		if err = duplicate(s.cluster(), half); err == nil {
			err = os.Rename(half, dir)
		}
	}
	return dir, errors.Join(err, s.janitor.Close())
}

// clusterKey identifies a cluster by Postgres, its account and the migrations.
func clusterKey() (string, error) {
	bin, err := pgserver.Find(0)
	if err != nil {
		return "", err
	}
	version, err := exec.Command(bin.Path("postgres"), "--version").Output()
	if err != nil {
		return "", err
	}
	account, err := pgserver.FindAccount()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s%s\n", version, account.Name)
	err = fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := migrations.FS.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), err
}

// keep is how long clusters of other migrations stay: other checkouts may use them.
const keep = 7 * 24 * time.Hour

// sweep removes leftovers of interrupted processes, and clusters that are older than keep.
func sweep(base string) {
	old, _ := os.ReadDir(base) // nothing to remove then
	for _, e := range old {
		fi, err := e.Info()
		if err == nil && e.IsDir() && (strings.HasSuffix(e.Name(), ".half") || time.Since(fi.ModTime()) > keep) {
			_ = os.RemoveAll(filepath.Join(base, e.Name())) // tried again at the next
		}
	}
}

// duplicate copies a cluster with its owners and modes.
func duplicate(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy a cluster: %w: %s", err, out)
	}
	return nil
}
