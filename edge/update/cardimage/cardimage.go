// Package cardimage puts the content of a robot's memory card into the system image of a release, so that an application reaches robots as every release does: signed,
// rolled out in phases, and taken back with its version.
//
//	{"version": "1.0.0.1"}\n            what the image says of itself, in one line
//	kennel-card 1 BYTES\n
//	a tar archive of so many bytes      regular files
package cardimage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of a card, which hold an application many times.
const (
	MaxBytes = 16 << 20 // of the tar archive
	MaxFiles = 1000
	maxLine  = 4 << 10
)

const magic = "kennel-card 1 "

// Files are those of a card by their names, with slashes.
type Files map[string][]byte

// Error says where an image is wrong.
type Error struct {
	Offset          int64 // in the image
	What            string
	Expected, Found string
}

// Error names the offset, and what was expected and found.
func (e *Error) Error() string {
	return fmt.Sprintf("card of the image: offset %d: %s: expected %s, found %.60q", e.Offset, e.What, e.Expected, e.Found)
}

// Collect returns the files below a folder of the host.
func Collect(folder fs.FS) (Files, error) {
	files, size := Files{}, 0
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := fs.ReadFile(folder, name)
		files[name] = b
		if size += len(b); size > MaxBytes || len(files) > MaxFiles {
			return fmt.Errorf("%s: want at most %d bytes in %d files", name, MaxBytes, MaxFiles)
		}
		return err
	})
	return files, err
}

// Append appends the card to an image that ends behind its first line. The same files give the same bytes.
func Append(image []byte, files Files) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644, Format: tar.FormatPAX}); err != nil {
			return nil, fmt.Errorf("card: %w", err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("card: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	if b.Len() > MaxBytes {
		return nil, fmt.Errorf("card: %d bytes, want at most %d", b.Len(), MaxBytes)
	}
	image = append(strconv.AppendInt(append(image, magic...), int64(b.Len()), 10), '\n')
	return append(image, b.Bytes()...), nil
}

// Read returns the files of the card in an image; nil: it has none.
func Read(image io.Reader) (Files, error) {
	r := bufio.NewReaderSize(image, maxLine)
	first, err := r.ReadSlice('\n')
	if err != nil {
		return nil, none(err)
	}
	at := int64(len(first))
	line, err := r.ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(line, []byte(magic)) {
		return nil, none(err)
	}
	size, err := strconv.ParseUint(string(line[len(magic):len(line)-1]), 10, 32)
	if err != nil || size > MaxBytes {
		return nil, &Error{at + int64(len(magic)), "bytes", fmt.Sprintf("0 to %d", MaxBytes), string(line[len(magic) : len(line)-1])}
	}
	at += int64(len(line))
	body := &io.LimitedReader{R: r, N: int64(size)}
	files, t, sum := Files{}, tar.NewReader(body), int64(0)
	for {
		where := at + int64(size) - body.N
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, body)
			if err == nil && body.N > 0 {
				err = &Error{at + int64(size) - body.N, "archive", fmt.Sprintf("%d bytes more", body.N), "the end"}
			}
			if err != nil {
				return nil, err
			}
			return files, nil
		}
		if err != nil {
			return nil, &Error{where, "entry", "a tar archive", err.Error()}
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		_, twice := files[h.Name]
		if h.Typeflag != tar.TypeReg || !fs.ValidPath(h.Name) || h.Name == "." || strings.ContainsAny(h.Name, "\\\x00") || twice || len(files) == MaxFiles {
			return nil, &Error{where, "entry", fmt.Sprintf("at most %d regular files, each once, below the card", MaxFiles), h.Name}
		}
		if sum += h.Size; h.Size > MaxBytes || sum > MaxBytes { // a sparse file takes less in the archive
			return nil, &Error{where, "entry " + h.Name, fmt.Sprintf("files of at most %d bytes in all", MaxBytes), strconv.FormatInt(sum, 10)}
		}
		b, err := io.ReadAll(t)
		if err != nil {
			return nil, &Error{where, "entry " + h.Name, fmt.Sprintf("%d bytes", h.Size), err.Error()}
		}
		files[h.Name] = b
	}
}

// none returns the error of reading an image that has no card.
func none(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}
