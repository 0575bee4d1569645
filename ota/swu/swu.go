// Package swu checks the update files of SWUpdate while they pass: a cpio archive in the form "newc" (070701) or "crc" (070702) whose first file is
// sw-description.
//
//	6 magic | 13 fields of 8 hex digits | name, zero byte, padding to 4 | data, padding to 4 | ... | TRAILER!!! | zeros
//
// What sw-description says, and whether its signature is good, is for the device to judge.
package swu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kennel/ota"
)

const (
	newc, crc   = "070701", "070702"
	first, last = "sw-description", "TRAILER!!!"
	header      = 110 // bytes
	maxName     = 256
	maxFiles    = 10_000
	maxPadding  = 64 << 10 // zeros after the last file: cpio fills its last block
)

// Is reports whether a file that begins with b is one for this package.
func Is(b []byte) bool {
	return len(b) >= len(newc) && (string(b[:6]) == newc || string(b[:6]) == crc)
}

// Check reads r to its end. The error of a file that SWUpdate would refuse is an ota.Failure with the code BadArchive or WrongOrder.
func Check(r io.Reader) error {
	c := checker{r: bufio.NewReaderSize(r, 64<<10)}
	for n := 0; ; n++ {
		name, err := c.file(n == 0)
		switch {
		case err != nil:
			return err
		case name == last && n == 0:
			return ota.Fail(ota.BadArchive, "the archive is empty: want %s first", first)
		case name == last:
			return c.end()
		case n == maxFiles:
			return ota.Fail(ota.BadArchive, "more than %d files", maxFiles)
		}
	}
}

type checker struct {
	r  *bufio.Reader
	at int64
}

// fail says where the file is wrong.
func (c *checker) fail(format string, args ...any) error {
	return ota.Fail(ota.BadArchive, "byte %d: %w", c.at, fmt.Errorf(format, args...))
}

// read fills b.
func (c *checker) read(b []byte, what string) error {
	n, err := io.ReadFull(c.r, b)
	if c.at += int64(n); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.fail("the file ends in the middle of %s", what)
	}
	return err
}

// pad skips what fills up to a multiple of four bytes.
func (c *checker) pad() error {
	var b [3]byte
	return c.read(b[:-c.at&3], "padding")
}

// file reads one file and returns its name.
func (c *checker) file(isFirst bool) (string, error) {
	var h [header]byte
	if err := c.read(h[:], "the header of a file"); err != nil {
		return "", err
	}
	if !Is(h[:]) {
		return "", c.fail("magic %q: want %s or %s", h[:6], newc, crc)
	}
	var field [13]uint32
	for i := range field {
		v, err := strconv.ParseUint(string(h[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			return "", c.fail("header field %d is %q: want 8 hex digits", i+1, h[6+8*i:14+8*i])
		}
		field[i] = uint32(v)
	}
	size, length, sum := int64(field[6]), field[11], field[12]
	if length < 2 || length > maxName {
		return "", c.fail("name of %d bytes: want 1 to %d and a zero byte", length, maxName-1)
	}
	text := make([]byte, length)
	if err := c.read(text, "a name"); err != nil {
		return "", err
	}
	name, zero := strings.CutSuffix(string(text), "\x00")
	switch {
	case !zero || strings.ContainsRune(name, 0):
		return "", c.fail("name %q: want a zero byte only at the end", text)
	case name == last && size == 0:
		return last, c.pad()
	case isFirst && name != first:
		return "", ota.Fail(ota.WrongOrder, "the first file is %.80q: want %s", name, first)
	case strings.HasPrefix(name, "/") || name == ".." || strings.Contains("/"+name+"/", "/../"):
		return "", c.fail("name %.80q leads out of the folder", name)
	case !isFirst && name == first:
		return "", c.fail("a second %s", first)
	}
	if err := c.pad(); err != nil {
		return "", err
	}
	got, err := c.data(size, name)
	if err == nil && string(h[:6]) == crc && got != sum {
		err = c.fail("file %.80q has checksum %08x: want %08x", name, got, sum)
	}
	if err == nil {
		err = c.pad()
	}
	return name, err
}

// data skips the content of a file and returns the sum of its bytes.
func (c *checker) data(size int64, name string) (sum uint32, err error) {
	var b [32 << 10]byte
	for size > 0 && err == nil {
		piece := b[:min(size, int64(len(b)))]
		if err = c.read(piece, strconv.Quote(name[:min(len(name), 80)])); err == nil {
			for _, x := range piece {
				sum += uint32(x)
			}
			size -= int64(len(piece))
		}
	}
	return sum, err
}

// end reads what comes after the last file.
func (c *checker) end() error {
	for n := 0; ; n++ {
		b, err := c.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case b != 0 || n == maxPadding:
			return c.fail("data after %s", last)
		}
		c.at++
	}
}
