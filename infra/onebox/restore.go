package onebox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/infra/agefile"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// Restore makes the instance of a Backup in dir, which must be absent or empty (kind Conflict otherwise). Everything is built and
// checked in a folder beside it, which becomes dir in one step at the end: an interrupted restore leaves dir as it was. An archive that
// is damaged is refused as Corrupt. ids open an encrypted one. settle changes the restored database before dir is there.
func Restore(ctx context.Context, file, dir string, ids agefile.Identities, log *slog.Logger, settle Settle) error {
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
	if err := restoreInto(ctx, f, ids, tmp, log, settle, nil); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := syncTree(tmp); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := os.Remove(p.Root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(tmp, p.Root); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return atomicfile.Sync(parent)
}

// Settle changes a restored database before anything else works on it; made is when the backup was.
type Settle func(ctx context.Context, db pg.Config, made time.Time) error

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
		return errs.Coded(errs.Conflict, "not_empty", "restore: folder %s is not empty (%d entries, such as %s): restore creates a new instance; give another folder with -data, or move this one away",
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

// Scratch is a restored instance whose Postgres runs for the time of a call.
type Scratch struct {
	Paths     Paths
	Manifest  Manifest
	Encrypted bool
	Postgres  *Postgres
}

// Drill restores a backup into a folder of its own below parent, calls look with it while its Postgres runs, and removes the folder, also when
// this process is killed. Nothing else of the backup is started.
func Drill(ctx context.Context, file, parent string, ids agefile.Identities, log *slog.Logger, look func(context.Context, Scratch) error) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer f.Close()
	tmp, err := os.MkdirTemp(parent, "kennel-drill-")
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	janitor, err := proc.RemoveAfterDeath(tmp)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer janitor.Close()
	if err := restoreInto(ctx, f, ids, tmp, log, nil, look); err != nil {
		return fmt.Errorf("drill of %s: %w", file, err)
	}
	return nil
}

// restoreInto makes a whole instance in the folder tmp, made by us. settle, or look, if there is one, sees it before its Postgres stops.
func restoreInto(ctx context.Context, archive *os.File, ids agefile.Identities, tmp string, log *slog.Logger, settle Settle, look func(context.Context, Scratch) error) error {
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
	s := Scratch{Paths: p}
	dump, err := s.unpack(archive, ids)
	if err != nil {
		return err
	}
	defer dump.Close()
	if look == nil && s.Manifest.Objects != nil {
		return errs.New(errs.Invalid, "this is a backup of an installation with its own Postgres and S3: restore it with -config FILE")
	}
	err = startedDatabase(ctx, p, log, func(db *Postgres) error {
		own, err := db.server()
		if err != nil {
			return err
		}
		if err := own.tool(ctx, proc.Spec{Name: "pg_restore", Stdin: dump}, "--no-owner", "--exit-on-error", "--single-transaction"); err != nil {
			return err
		}
		if look == nil {
			return settle(ctx, db.Config(), s.Manifest.Created)
		}
		s.Postgres = db
		return look(ctx, s)
	})
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(tmp, dumpName)), os.RemoveAll(p.Log), os.Mkdir(p.Log, 0o700), l.release())
}

// unpack extracts the archive into the scratch folder and returns the dump.
func (s *Scratch) unpack(archive *os.File, ids agefile.Identities) (*parts, error) {
	tmp := s.Paths.Root
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, encrypted, err := agefile.Open(archive, ids)
	if err != nil {
		return nil, err
	}
	s.Encrypted = encrypted
	if s.Manifest, err = unpack(content, root); err != nil {
		return nil, err
	}
	if s.Manifest.Objects != nil { // of an installation with a Postgres of its own
		if err := atomicfile.WriteFile(s.Paths.secret(postgresName), []byte(rand.Text()+"\n"), 0o600); err != nil {
			return nil, err
		}
	} else if _, ok := s.Manifest.Members["secrets/"+postgresName]; !ok {
		return nil, corrupt("member secrets/%s is missing", postgresName)
	}
	dump := &parts{dir: tmp}
	for name := range s.Manifest.Members {
		if name == dumpName || strings.HasPrefix(name, dumpName+"/") { // one file: an older program made the backup
			dump.names = append(dump.names, name)
		}
	}
	if slices.Sort(dump.names); len(dump.names) == 0 {
		return nil, corrupt("member %s is missing", dumpName)
	}
	bin, err := pgserver.Find(0)
	if err != nil {
		return nil, err
	}
	if bin.Major < s.Manifest.Postgres {
		return nil, errs.New(errs.Invalid, "the backup is from Postgres %d, and this machine has %d: install postgresql-%d", s.Manifest.Postgres, bin.Major, s.Manifest.Postgres)
	}
	return dump, nil
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
		return atomicfile.Sync(name) // works for files as well
	})
}
