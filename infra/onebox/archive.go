package onebox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"kennel/infra/errs"
)

// The archive is a zstd-compressed tar: folders and regular files, and as its last member the manifest, which names every file with its
// size and SHA-256. An archive without a manifest was cut off.

const (
	manifestName  = "manifest.json"
	archiveFormat = 1
	maxManifest   = 64 << 20 // bytes
	partSize      = 4 << 20  // bytes of the dump in one file; held in memory
)

// tops are what an archive may hold: nothing in it can pose as a part of the cluster or as a lock.
var tops = []string{dumpName, "s3", "ca", "secrets", "robots", manifestName}

// Manifest describes a backup.
type Manifest struct {
	Format   int               `json:"format"` // 1
	Created  time.Time         `json:"created"`
	Postgres int               `json:"postgres"` // major version of the server that was dumped
	Members  map[string]Member `json:"members"`  // by slash-separated path
	RootKey  bool              `json:"root_key"` // the key of the root authority is in it
	Tables   map[string]Table  `json:"tables"`   // by schema and name; what the dump holds. nil: an older program made the backup
	// Objects are what S3 keeps beside each object, by key. nil: a one-machine instance, whose gateway keeps it in files.
	Objects map[string]ObjectInfo `json:"objects"`
}

// Table describes the rows of a table.
type Table struct {
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"` // of a hash of each row, in any order
}

// Member is one file of a backup.
type Member struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
}

// packer writes an archive.
type packer struct {
	zip      *zstd.Encoder
	tar      *tar.Writer
	manifest Manifest
	omit     func(member string) bool // members to leave out; nil: none
}

func newPacker(w io.Writer, m Manifest) (*packer, error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, err
	}
	m.Format, m.Members = archiveFormat, map[string]Member{}
	return &packer{zip: z, tar: tar.NewWriter(z), manifest: m}, nil
}

// file adds the file at from under name. A file that was removed since it was listed is left out.
func (p *packer) file(name, from string) error {
	f, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return errs.New(errs.Invalid, "backup: %s is not a regular file (%v)", from, fi.Mode())
	}
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: fi.Size(), Mode: 0o600, ModTime: fi.ModTime()}); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(p.tar, h), f, fi.Size()); err != nil {
		return fmt.Errorf("backup: %s changed while it was read: %w", from, err)
	}
	p.manifest.Members[name] = Member{fi.Size(), hex.EncodeToString(h.Sum(nil))}
	return nil
}

// tree adds the folder at from, with everything below it, under name. skip names folders to leave out, wherever they are. Sockets and pipes are
// left out too: only the program that listens there can use them, and it creates them again.
func (p *packer) tree(name, from string, skip ...string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		member := path.Join(name, filepath.ToSlash(rel))
		if d.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0 {
			return nil
		}
		if p.omit != nil && p.omit(member) {
			return nil
		}
		if !d.IsDir() {
			return p.file(member, file)
		}
		for _, s := range skip {
			if d.Name() == s {
				return fs.SkipDir
			}
		}
		return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: member + "/", Mode: 0o700})
	})
}

// stream adds what r yields, whose length is unknown, as the files name/000000, name/000001 and so on of at most partSize bytes.
func (p *packer) stream(name string, r io.Reader) error {
	for n, b := 0, make([]byte, partSize); ; n++ {
		size, err := io.ReadFull(r, b)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if size == 0 {
			return nil
		}
		member := fmt.Sprintf("%s/%06d", name, n)
		if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: member, Size: int64(size), Mode: 0o600, ModTime: p.manifest.Created}); err != nil {
			return err
		}
		if _, err := p.tar.Write(b[:size]); err != nil {
			return err
		}
		sum := sha256.Sum256(b[:size])
		p.manifest.Members[member] = Member{int64(size), hex.EncodeToString(sum[:])}
	}
}

// parts reads the files that stream wrote, one after the other. It removes each one that it has read.
type parts struct {
	dir   string
	names []string
	open  *os.File
}

func (p *parts) Read(b []byte) (int, error) {
	for {
		if p.open == nil {
			if len(p.names) == 0 {
				return 0, io.EOF
			}
			f, err := os.Open(filepath.Join(p.dir, p.names[0]))
			if err != nil {
				return 0, err
			}
			p.open = f
		}
		n, err := p.open.Read(b)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := p.Close(); err != nil {
			return 0, err
		}
	}
}

// Close ends the file that is being read.
func (p *parts) Close() error {
	if p.open == nil {
		return nil
	}
	err := errors.Join(p.open.Close(), os.Remove(p.open.Name()))
	p.open, p.names = nil, p.names[1:]
	return err
}

// close adds the manifest and ends the archive.
func (p *packer) close() error {
	b, err := json.MarshalIndent(p.manifest, "", " ")
	if err != nil {
		return err
	}
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(b)), Mode: 0o600, ModTime: p.manifest.Created}); err != nil {
		return err
	}
	_, err = p.tar.Write(b)
	return errors.Join(err, p.tar.Close(), p.zip.Close())
}

func corrupt(format string, args ...any) error {
	return errs.New(errs.Corrupt, "backup archive: "+format, args...)
}

// unpack extracts an archive into root, which nothing in it can leave, and checks every file against the manifest. After an error root
// holds a part of it; its kind is Corrupt if the archive is to blame.
func unpack(r io.Reader, root *os.Root) (Manifest, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return Manifest{}, corrupt("%w", err)
	}
	defer z.Close()
	m, err := untar(z, root)
	if err != nil {
		return Manifest{}, err
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the compressor's own checksum comes last
		return Manifest{}, corrupt("at its end: %w", err)
	}
	return m, nil
}

// untar is unpack without the compression.
func untar(r io.Reader, root *os.Root) (Manifest, error) {
	t := tar.NewReader(r)
	found := map[string]Member{}
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return Manifest{}, corrupt("it ends after %d files without %s: it is truncated, or not a backup", len(found), manifestName)
		}
		if err != nil {
			return Manifest{}, corrupt("after %d files: %w", len(found), err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if top, _, _ := strings.Cut(name, "/"); !fs.ValidPath(name) || !slices.Contains(tops, top) {
			return Manifest{}, corrupt("member %q: want a path in %v", h.Name, tops)
		}
		switch {
		case name == manifestName && h.Typeflag == tar.TypeReg:
			m, err := readManifest(t, h.Size, found)
			if err != nil {
				return Manifest{}, err
			}
			if _, err := t.Next(); err == nil {
				return Manifest{}, corrupt("data after %s", manifestName)
			} else if !errors.Is(err, io.EOF) {
				return Manifest{}, corrupt("after %s: %w", manifestName, err)
			}
			return m, nil
		case h.Typeflag == tar.TypeDir:
			if err := root.MkdirAll(name, 0o700); err != nil {
				return Manifest{}, err
			}
		case h.Typeflag == tar.TypeReg:
			if _, twice := found[name]; twice {
				return Manifest{}, corrupt("member %s exists twice", name)
			}
			m, err := extract(t, root, name)
			if err != nil {
				return Manifest{}, err
			}
			found[name] = m
		default:
			return Manifest{}, corrupt("member %s is of type %q, want a file or a folder", name, h.Typeflag)
		}
	}
}

func extract(t *tar.Reader, root *os.Root, name string) (Member, error) {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return Member{}, err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Member{}, err
	}
	defer f.Close()
	h := sha256.New()
	src := &readErr{r: t}
	n, err := io.Copy(io.MultiWriter(f, h), src)
	if src.err != nil {
		return Member{}, corrupt("member %s: %w", name, src.err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return Member{}, err
	}
	return Member{n, hex.EncodeToString(h.Sum(nil))}, nil
}

// readErr remembers that reading failed, which Copy cannot tell from a failed write.
type readErr struct {
	r   io.Reader
	err error
}

func (r *readErr) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func readManifest(r io.Reader, size int64, found map[string]Member) (Manifest, error) {
	if size > maxManifest {
		return Manifest{}, corrupt("manifest of %d bytes: want at most %d", size, maxManifest)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		return Manifest{}, corrupt("manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		return Manifest{}, corrupt("manifest: %w", err)
	}
	if m.Format != archiveFormat {
		return Manifest{}, errs.New(errs.Invalid, "backup archive: format %d: want %d", m.Format, archiveFormat)
	}
	for name, want := range m.Members {
		got, ok := found[name]
		if !ok {
			return Manifest{}, corrupt("member %s of the manifest is missing", name)
		}
		if got != want {
			return Manifest{}, corrupt("member %s has %d bytes and SHA-256 %s: want %d and %s, as in the manifest", name, got.Size, got.SHA256, want.Size, want.SHA256)
		}
	}
	for name := range found {
		if _, ok := m.Members[name]; !ok {
			return Manifest{}, corrupt("member %s is not in the manifest", name)
		}
	}
	return m, nil
}
