// Package logfile reads the logs that robots upload: it unpacks them, however they are packed, and finds lines by text, time and level.
//
// A log is plain text, or gzip, bzip2 or tar of logs, in any order (log.gz, diagnostics.tar.bz2, VEC-LOG-04, VEC-LOG-07). It is unpacked as it is read
// and never kept. What comes from a robot is bounded: a few bytes may unpack to very many, so a Budget says how many bytes a reader may make of them.
package logfile

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"kennel/infra/errs"
)

// Bounds of one log, own defaults: the original robot's whole folder of uploads has 10 MB (VEC-LOG-03).
const (
	MaxUnpacked = 128 << 20 // bytes, of all layers together
	maxLines    = 2_000_000
	maxFiles    = 1000
	maxLayers   = 4 // such as gzip, tar, gzip
)

// CodeTooLarge is the code of a log that unpacks to more than its budget.
const CodeTooLarge = "log_too_large"

// Budget is how many bytes may still be unpacked.
type Budget struct{ left int64 }

// NewBudget returns a Budget of n bytes.
func NewBudget(n int64) *Budget { return &Budget{n} }

// Spent reports whether nothing is left.
func (b *Budget) Spent() bool { return b.left <= 0 }

func (b *Budget) reader(ctx context.Context, r io.Reader) io.Reader { return &counted{ctx, r, b} }

type counted struct {
	ctx context.Context
	r   io.Reader
	b   *Budget
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.b.left <= 0 {
		return 0, errs.Coded(errs.Invalid, CodeTooLarge, "the log unpacks to more than %d MiB, too much to show; download it instead", MaxUnpacked>>20)
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.b.left)])
	c.b.left -= int64(n)
	return n, err
}

// File is one file of a log.
type File struct {
	Name  string `json:"name"`
	Text  bool   `json:"text"`  // false: no text, so it has no lines
	Lines int    `json:"lines"` // of the whole file
}

// unpacker walks one log.
type unpacker struct {
	ctx    context.Context
	budget *Budget
	files  int
	each   func(name string, r io.Reader) error // nil reader: no text
}

// damaged says that a log ends or breaks where it should not; what came before was read.
type damaged struct{ error }

// magic is how many bytes show the kind of a file: a tar header has its word at 257.
const magic = 512

// open reads one file of a log, which may hold others. tail says that r continues after it, so that a damaged file ends the log.
func (u *unpacker) open(name string, r io.Reader, layer int) error {
	b := bufio.NewReaderSize(r, 32<<10)
	head, err := b.Peek(magic)
	if err != nil && !errors.Is(err, io.EOF) {
		return broken(name, err)
	}
	packed := func(inner io.Reader, name string) error {
		if layer == maxLayers {
			return errs.Coded(errs.Invalid, "log_layers", "%s is compressed more than %d times over; download it instead", name, maxLayers)
		}
		return u.open(name, u.budget.reader(u.ctx, inner), layer+1)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return broken(name, err)
		}
		return packed(z, unsuffixed(name, ".gz", ".tgz"))
	case len(head) > 10 && string(head[:3]) == "BZh" && string(head[4:10]) == "1AY&SY":
		return packed(bzip2.NewReader(b), unsuffixed(name, ".bz2", ".tbz2"))
	case len(head) >= 262 && string(head[257:262]) == "ustar":
		return u.members(tar.NewReader(b), unsuffixed(name, ".tar"), layer)
	}
	if u.files++; u.files > maxFiles {
		return errs.Coded(errs.Invalid, "log_files", "the log holds more than %d files; download it instead", maxFiles)
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return u.each(name, nil)
	}
	return u.each(name, b)
}

func (u *unpacker) members(t *tar.Reader, name string, layer int) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(name, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if layer == maxLayers {
			return errs.Coded(errs.Invalid, "log_layers", "%s is compressed more than %d times over; download it instead", name, maxLayers)
		}
		member := strings.ToValidUTF8(path.Clean(h.Name), "?")
		if len(member) > 200 {
			member = strings.ToValidUTF8(member[:200], "")
		}
		// Counted, because a sparse file makes bytes of nothing.
		if err := u.open(member, u.budget.reader(u.ctx, t), layer+1); err != nil {
			return err
		}
	}
}

func unsuffixed(name string, suffixes ...string) string {
	for _, s := range suffixes {
		if n, ok := strings.CutSuffix(name, s); ok && n != "" {
			return n
		}
	}
	return name
}

// broken says what is wrong with a file of a log, unless the reason is another: our limits, the caller, the store.
func broken(name string, err error) error {
	if errs.CodeOf(err) != "" || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errs.KindOf(err) == errs.Unavailable {
		return err
	}
	return damaged{fmt.Errorf("%s is damaged: %w", name, err)}
}
