package onebox

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"kennel/infra/agefile"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// Parts are a Postgres and a bucket that other programs run, and the folder of the authorities: an installation of kenneld serve.
type Parts struct {
	Postgres pg.Config
	Bucket   string
	Objects  *blob.Store
	CA       string
	Seal     string // file of the sealing key
}

// ObjectInfo holds what S3 keeps beside an object's bytes.
type ObjectInfo struct {
	Type string            `json:"type,omitempty"`
	Meta map[string]string `json:"meta,omitempty"`
}

const (
	objectsDir = "s3/objects/"
	sealMember = "ca/seal.key"
)

// server is a Postgres, and the programs of this machine that can talk to it.
type server struct {
	pg.Config
	bin      pgserver.Binaries
	password string
}

// server returns the instance's own.
func (p *Postgres) server() (server, error) {
	pw, err := p.Password()
	return server{p.Config(), p.Binaries(), pw}, err
}

// outside returns the server that cfg names. A password in the DSN is taken out of it, because the arguments of programs are for everybody to read.
func outside(cfg pg.Config) (server, error) {
	parsed, err := pgx.ParseConfig(cfg.DSN)
	if err != nil {
		return server{}, errs.New(errs.Invalid, "postgres.dsn: %w", err)
	}
	s := server{Config: cfg, password: parsed.Password}
	if cfg.PasswordFile != "" {
		b, err := os.ReadFile(cfg.PasswordFile)
		if err != nil {
			return server{}, fmt.Errorf("postgres: password: %w", err)
		}
		s.password = strings.TrimSpace(string(b))
	} else if u, err := url.Parse(cfg.DSN); err == nil && u.User != nil {
		u.User = url.User(u.User.Username())
		s.DSN = u.String()
	} else if s.password != "" {
		return server{}, errs.New(errs.Invalid, "postgres.dsn contains a password: want a URL without one, and the password in postgres.password_file")
	}
	s.bin, err = pgserver.Find(0)
	return s, err
}

// tool runs one of Postgres's own programs, which spec names, on the server's database.
func (s server) tool(ctx context.Context, spec proc.Spec, args ...string) error {
	spec.Path, spec.Args = s.bin.Path(spec.Name), append([]string{"--dbname=" + s.DSN, "--no-password"}, args...)
	spec.Env, spec.Dir = append(pgserver.Env(), "PGPASSWORD="+s.password), "/"
	return proc.Once(ctx, spec)
}

// save adds the installation to an archive.
func (x *Parts) save(ctx context.Context, p *packer) error {
	db, err := outside(x.Postgres)
	if err != nil {
		return err
	}
	p.manifest.Objects = map[string]ObjectInfo{}
	if err := p.database(ctx, db); err != nil {
		return err
	}
	for o, err := range x.Objects.List(ctx, "") {
		if err == nil {
			err = x.object(ctx, p, o.Key)
		}
		if err != nil {
			return err
		}
	}
	if err := p.tree("ca", x.CA); err != nil {
		return err
	}
	if _, there := p.manifest.Members[sealMember]; there {
		return nil
	}
	return p.file(sealMember, x.Seal)
}

// object adds an object. One that was deleted since it was listed is left out.
func (x *Parts) object(ctx context.Context, p *packer, key string) error {
	body, info, err := x.Objects.Get(ctx, key, 0, 0)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer body.Close() // only read
	name := objectsDir + x.Bucket + "/" + key
	if !fs.ValidPath(name) {
		return errs.New(errs.Invalid, "object %q cannot be a file of a backup: want only objects that kenneld stored", key)
	}
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size, Mode: 0o600, ModTime: info.Modified}); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(p.tar, h), body, info.Size); err != nil {
		return fmt.Errorf("read object %s: %w", key, err)
	}
	p.manifest.Members[name] = Member{info.Size, hex.EncodeToString(h.Sum(nil))}
	p.manifest.Objects[key] = ObjectInfo{info.ContentType, info.Metadata}
	return nil
}

// RestoreParts brings a backup back into to: objects, authorities if there are none, and last, in one step, a database without tables (kind Conflict
// otherwise), which settle then changes. After an interruption it can be repeated, with a database that is empty again. The archive is unpacked below scratch ("": the folder for temporary files) meanwhile.
func RestoreParts(ctx context.Context, file, scratch string, ids agefile.Identities, to Parts, settle Settle) (err error) {
	db, err := outside(to.Postgres)
	if err != nil {
		return err
	}
	if err := mustLackTables(ctx, to.Postgres); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer f.Close()
	tmp, err := os.MkdirTemp(scratch, "kennel-restore-")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	janitor, err := proc.RemoveAfterDeath(tmp)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer janitor.Close()
	s := Scratch{}
	if s.Paths, err = PathsOf(tmp); err != nil {
		return err
	}
	if err := s.Paths.make(); err != nil {
		return err
	}
	dump, err := s.unpack(f, ids)
	if err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	defer dump.Close()
	if s.Manifest.Objects == nil {
		return errs.New(errs.Invalid, "%s is a backup of a one-machine instance: restore it into a folder with -data", file)
	}
	if err := to.putObjects(ctx, tmp, s.Manifest); err != nil {
		return err
	}
	if err := to.putAuthorities(s.Paths.CA); err != nil {
		return err
	}
	if err := db.tool(ctx, proc.Spec{Name: "pg_restore", Stdin: dump}, "--no-owner", "--no-comments", "--exit-on-error", "--single-transaction"); err != nil {
		return err
	}
	if err := settle(ctx, to.Postgres, s.Manifest.Created); err != nil {
		return fmt.Errorf("tables restored, but operations in progress at the time of the backup not stopped; do not start kenneld: empty the database and restore again: %w", err)
	}
	return nil
}

func mustLackTables(ctx context.Context, cfg pg.Config) error {
	pool, err := pg.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	var n int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`).Scan(&n); err != nil {
		return pg.Wrap(err, "count tables of the database")
	}
	if n > 0 {
		return errs.Coded(errs.Conflict, "not_empty", "restore: the database has %d tables: want an empty one; drop and create it", n)
	}
	return nil
}

func (x *Parts) putObjects(ctx context.Context, dir string, m Manifest) error {
	if err := x.Objects.EnsureBucket(ctx); err != nil {
		return err
	}
	for name, member := range m.Members {
		rest, ok := strings.CutPrefix(name, objectsDir)
		if !ok {
			continue
		}
		_, key, _ := strings.Cut(rest, "/") // the bucket may have another name here
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		info := m.Objects[key]
		err = x.Objects.Put(ctx, key, f, member.Size, blob.PutOptions{ContentType: info.Type, Metadata: info.Meta})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// putAuthorities fills a folder that is absent or empty. Another one stays as it is.
func (x *Parts) putAuthorities(from string) error {
	if have, err := os.ReadDir(x.CA); len(have) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.CopyFS(x.CA, os.DirFS(from)); err != nil {
		return fmt.Errorf("restore authorities: %w", err)
	}
	return syncTree(x.CA)
}
