package onebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kennel/infra/durable"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgserver"
)

// Restore makes the instance of a Backup in dir, which must be absent or empty (kind Conflict otherwise). Everything is built and
// checked in a folder beside it, which becomes dir in one step at the end: an interrupted restore leaves dir as it was. An archive that
// is damaged is refused as Corrupt.
func Restore(ctx context.Context, file, dir string, log *slog.Logger) error {
	p, err := PathsOf(dir)
	if err != nil {
		return err
	}
	if err := mustBeEmpty(p.Root); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer f.Close()
	parent := filepath.Dir(p.Root)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	removeInterrupted(ctx, log, p.Root)
	tmp, err := os.MkdirTemp(parent, filepath.Base(p.Root)+restoring)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(tmp) // finds nothing once it is renamed
	if err := restoreInto(ctx, f, tmp, log); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := os.Remove(p.Root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(tmp, p.Root); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return durable.Sync(parent)
}

// restoring marks the folders in which a restore works: DIR.restoring-123.
const restoring = ".restoring-"

func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 {
		return errs.Coded(errs.Conflict, "not_empty", "restore: folder %s is not empty (%d entries, such as %s): restore makes a new instance, name another folder with -data or move this one away",
			dir, len(entries), entries[0].Name())
	}
	return nil
}

// removeInterrupted removes what a killed restore into dir left beside it. One that still works holds its lock.
func removeInterrupted(ctx context.Context, log *slog.Logger, dir string) {
	old, _ := filepath.Glob(dir + restoring + "*") // a pattern in dir itself would only find less
	for _, o := range old {
		op, err := PathsOf(o)
		if err != nil {
			continue
		}
		l, err := takeLockOfDead(ctx, op)
		if errors.Is(err, fs.ErrNotExist) { // killed before it made its folders; or just begun: then it fails and says so
			_ = os.Remove(o)
			continue
		}
		if err != nil {
			continue
		}
		// Its Postgres, or initdb, may still be dying, and write for another moment.
		for end := time.Now().Add(dying); ; {
			clusters, _ := filepath.Glob(op.cluster() + "*")
			err = nil
			for _, c := range clusters {
				err = errors.Join(err, pgserver.RemoveCluster(ctx, log, c))
			}
			if err = errors.Join(err, os.RemoveAll(o)); err == nil || ctx.Err() != nil || time.Now().After(end) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			log.Warn("leftover of an interrupted restore not removed", "dir", o, logging.Err, err)
		}
		_ = l.f.Close() // there is nothing left to be locked
	}
}

// dying is how long what a killed process began may outlive it.
const dying = 10 * time.Second

// takeLockOfDead is takeLock, but a lock whose holder is gone is waited for: a child that the holder had just forked keeps it until it runs its
// own program.
func takeLockOfDead(ctx context.Context, p Paths) (*lock, error) {
	for end := time.Now().Add(dying); ; {
		l, err := takeLock(p)
		if errs.CodeOf(err) != "locked" || holderLives(p) || time.Now().After(end) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// holderLives reports whether the process that the lock names is there.
func holderLives(p Paths) bool {
	b, err := os.ReadFile(p.lockFile())
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join("/proc", strings.TrimSpace(string(b)), "comm"))
	return err == nil && len(strings.TrimSpace(string(b))) > 0
}

// restoreInto makes a whole instance in the folder tmp, made by us.
func restoreInto(ctx context.Context, archive *os.File, tmp string, log *slog.Logger) error {
	p, err := PathsOf(tmp)
	if err != nil {
		return err
	}
	if err := p.make(); err != nil {
		return err
	}
	l, err := takeLock(p)
	if err != nil {
		return err
	}
	defer l.f.Close()
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close()
	m, err := unpack(archive, root)
	if err != nil {
		return err
	}
	for _, want := range []string{dumpName, "secrets/" + postgresName} {
		if _, ok := m.Members[want]; !ok {
			return corrupt("member %s is missing", want)
		}
	}
	bin, err := pgserver.Find(0)
	if err != nil {
		return err
	}
	if bin.Major < m.Postgres {
		return errs.New(errs.Invalid, "the backup is from Postgres %d, here is %d: install postgresql-%d", m.Postgres, bin.Major, m.Postgres)
	}
	dump := filepath.Join(tmp, dumpName)
	err = startedDatabase(ctx, p, log, func(db *Postgres) error {
		return pgTool(ctx, db, "pg_restore", "--no-owner", "--exit-on-error", "--single-transaction", dump)
	})
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(dump), os.RemoveAll(p.Log), os.Mkdir(p.Log, 0o700), l.release(), syncTree(tmp))
}

// syncTree writes the restored files to the disk before the folder gets its name. Postgres has synced its own.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "pg" && filepath.Dir(name) == dir {
			return fs.SkipDir
		}
		return durable.Sync(name) // works for files as well
	})
}
