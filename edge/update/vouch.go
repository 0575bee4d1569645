package update

import (
	"context"
	"crypto/sha256"
	"encoding"
	"hash"
	"io"
	"slices"

	"kennel/ota"
	"kennel/ota/manifest"
)

// Voucher returns the length and SHA-256 that release metadata require of the archive with a manifest, or why they name no such archive, with a code.
type Voucher func(context.Context, *manifest.Manifest) (length int64, sum manifest.Sum, err error)

// whole is an archive whose every byte is hashed while it passes, from the first on, also across reboots.
type whole struct {
	r      io.Reader
	hash   hash.Hash // nil: the robot uses no release metadata
	at     int64     // bytes that passed
	every  int64     // bytes from one of past to the next
	past   []state   // of the hash, the latest last: a place to continue at is before what was read ahead
	length int64     // that it must have; -1: not known yet
	sum    manifest.Sum
}

// state is the hash of the first bytes of the archive.
type state struct {
	at   int64
	hash []byte
}

const maxPast = 8

// newWhole continues a download at c, or a bit before it: at is where.
func newWhole(r io.Reader, c *checkpoint, hashed bool, every int64) (*whole, error) {
	w := &whole{r: r, at: c.At, every: every, length: -1}
	if !hashed {
		return w, nil
	}
	w.hash = sha256.New()
	if w.at = c.Hashed; w.at > 0 {
		if err := w.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(c.Hash); err != nil {
			return nil, ota.Fail(ota.Other, "resume the hash of the archive: %w", err)
		}
	}
	return w, nil
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.hash == nil {
		return n, err
	}
	w.hash.Write(p[:n])
	if w.at += int64(n); w.length >= 0 && w.at > w.length {
		return 0, ota.Fail(ota.NotAuthentic, "the archive is longer than the %d bytes in the release metadata", w.length)
	}
	if k := len(w.past); k == 0 || w.at-w.past[k-1].at >= w.every {
		w.past = append(w.past[max(k+1-maxPast, 0):], w.now())
	}
	return n, err
}

func (w *whole) now() state {
	b, _ := w.hash.(encoding.BinaryMarshaler).MarshalBinary() // of SHA-256 it never fails
	return state{w.at, b}
}

// must sets the length and hash that the archive must have. size is its length according to the server; -1: not said. An archive that is too
// short is read all the same, because where it breaks off says more; check refuses it at the latest.
func (w *whole) must(length int64, sum manifest.Sum, size int64) error {
	w.length, w.sum = length, sum
	if size > length || w.at > length {
		return ota.Fail(ota.NotAuthentic, "the archive has %d bytes: want %d, as in the release metadata", max(size, w.at), length)
	}
	return nil
}

// check is called at the end, before anything that was read is put to use.
func (w *whole) check() error {
	if w.hash == nil {
		return nil
	}
	if got := manifest.Sum(w.hash.Sum(nil)); w.at != w.length || got != w.sum {
		return ota.Fail(ota.NotAuthentic, "the archive has %d bytes and SHA-256 %s: want %d and %s, as in the release metadata", w.at, got, w.length, w.sum)
	}
	return nil
}

// keep notes in c the hash of what is before it. If that is not known any longer, c has none, and the next try starts from the beginning.
func (w *whole) keep(c *checkpoint) {
	if w.hash == nil {
		return
	}
	for _, s := range slices.Backward(append(slices.Clone(w.past), w.now())) {
		if s.at <= c.At {
			c.Hashed, c.Hash = s.at, s.hash
			return
		}
	}
}
