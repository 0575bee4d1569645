package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"kennel/ota"
	"kennel/ota/manifest"
)

// The names of the first two files.
const (
	ManifestFile  = "manifest.ini"
	SignatureFile = "manifest.sha256"
)

const (
	readSize   = 64 << 10 // of one read of a compressed image
	maxPadding = 1 << 20  // zeros behind the archive: tar fills its last record, of 10 KiB unless told otherwise
)

// Options are what a Reader must know.
type Options struct {
	Key        *rsa.PublicKey // the manifest must be signed with it
	Unverified bool           // take any manifest: to look at an archive, never to install it
	Password   []byte         // of encrypted images; see Password
	Resume     *Point         // r begins there; nil: at the start of the archive
}

// Point is a place between two images of an archive, and what was read before it.
type Point struct {
	Raw, Signature []byte // as in Reader; they are verified again
	Images         int    // that were read before
	At             int64  // byte of the archive: Reader.Offset
}

// Reader reads an archive from its start to its end. Only Consumed may be called while another goroutine uses it.
//
// A fault ends the reading: every later call returns the same error. An error of the reader below comes back wrapped, with the code that it has itself.
type Reader struct {
	Manifest       *manifest.Manifest
	Raw, Signature []byte // manifest.ini and manifest.sha256

	src      *source
	tar      *tar.Reader
	password []byte
	images   int    // returned so far
	next     int64  // byte at which the next file begins
	now      *Image // the last of them
	err      error
}

// Open reads and verifies the manifest. Nothing of an image is read before that.
func Open(r io.Reader, o Options) (*Reader, error) {
	if o.Key == nil && !o.Unverified {
		return nil, errors.New("read an archive: no key to verify it with")
	}
	a := &Reader{src: &source{r: r}, password: o.Password}
	a.tar = tar.NewReader(a.src)
	var err error
	if p := o.Resume; p != nil {
		a.Raw, a.Signature, a.images, a.next = p.Raw, p.Signature, p.Images, p.At
		a.src.n.Store(p.At)
	} else if a.Raw, err = a.small(ManifestFile, manifest.MaxSize, ota.BadManifest); err != nil {
		return nil, err
	} else if a.Signature, err = a.small(SignatureFile, manifest.MaxSignature, ota.NotAuthentic); err != nil {
		return nil, err
	}
	if !o.Unverified {
		if err := manifest.Verify(o.Key, a.Raw, a.Signature); err != nil {
			return nil, err
		}
	}
	if a.Manifest, err = manifest.Parse(a.Raw); err != nil {
		return nil, err
	}
	if a.images < 0 || a.images > len(a.Manifest.Images) {
		return nil, a.fail(ota.Other, "continue after %d images: the manifest has %d", a.images, len(a.Manifest.Images))
	}
	return a, nil
}

// Offset returns the byte at which the next file begins, once the image before it was read to its end. A later Reader can begin there (Point).
func (a *Reader) Offset() int64 { return a.next }

// Consumed returns the bytes of the archive that were read so far, as they are transferred. It may be called at any time.
func (a *Reader) Consumed() int64 { return a.src.n.Load() }

// Next returns the next image, in the order of Manifest.Images, when the last one was read to its end. It returns io.EOF after the last image if nothing
// else follows: only then is the whole archive known to be sound.
func (a *Reader) Next() (*Image, error) {
	switch {
	case a.err != nil:
		return nil, a.err
	case a.now != nil && a.now.end == nil:
		return nil, a.fail(ota.Other, "image %s was not read to its end", a.now.Part)
	case a.images == len(a.Manifest.Images):
		return nil, a.finish()
	}
	i := &Image{Image: a.Manifest.Images[a.images], a: a, hash: sha256.New()}
	i.left = i.Bytes
	h, err := a.entry(i.Part.File(), maxFile(i.Image), ota.BadArchive)
	if err != nil {
		return nil, err
	}
	i.Size = h.Size
	body := io.Reader(a.tar)
	if i.Encrypted {
		if body, err = a.decrypt(i); err != nil {
			return nil, err
		}
	}
	if i.gz, err = gzip.NewReader(bufio.NewReaderSize(body, readSize)); err != nil {
		return nil, i.damaged(err)
	}
	a.now = i
	a.images++
	return i, nil
}

// maxFile bounds an image's file: compression adds little to what cannot be compressed, and a longer file would only keep the robot busy.
func maxFile(i manifest.Image) int64 { return i.Bytes + i.Bytes/64 + 4096 }

func (a *Reader) decrypt(i *Image) (io.Reader, error) {
	if len(a.password) == 0 {
		return nil, a.fail(ota.BadEncryption, "image %s is encrypted, and no password is known", i.Part)
	}
	head := make([]byte, len(salted)+saltSize)
	if n, err := io.ReadFull(a.tar, head); err != nil && a.cut(err) {
		return nil, a.fail(ota.BadArchive, "the archive ends after %d bytes, in %s", a.Consumed(), i.Part.File())
	} else if err != nil || !bytes.HasPrefix(head, []byte(salted)) {
		return nil, a.fail(ota.BadEncryption, "image %s begins with %.16q: want %s and %d bytes of salt", i.Part, head[:n], salted, saltSize)
	}
	return decrypter(a.tar, a.password, head[len(salted):])
}

// entry moves to the next file, which must be the named one and have at most limit bytes, otherwise the code is over.
func (a *Reader) entry(name string, limit int64, over ota.Code) (*tar.Header, error) {
	h, err := a.tar.Next()
	switch {
	case errors.Is(err, io.EOF) && a.src.err != nil: // without the two empty blocks that end a tar
		return nil, a.fail(ota.BadArchive, "the archive ends after %d bytes: want %s", a.Consumed(), name)
	case errors.Is(err, io.EOF):
		return nil, a.fail(ota.WrongOrder, "the archive has no more files: want %s", name)
	case err != nil:
		return nil, a.fail(ota.BadArchive, "where %s should begin, at byte %d: %w", name, a.Consumed(), err)
	case strings.TrimPrefix(h.Name, "./") != name:
		return nil, a.fail(ota.WrongOrder, "file %.80q: want %s", h.Name, name)
	case h.Typeflag != tar.TypeReg || sparse(h):
		return nil, a.fail(ota.BadArchive, "%s is a link, a sparse file or no file: want a regular file", name)
	case h.Size > limit:
		return nil, a.fail(over, "%s has %d bytes: at most %d", name, h.Size, limit)
	}
	const block = 512
	a.next = a.Consumed() + (h.Size+block-1)/block*block
	return h, nil
}

// sparse reports whether the entry has holes that take no space in the archive.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// small reads a file whole.
func (a *Reader) small(name string, limit int64, over ota.Code) ([]byte, error) {
	if _, err := a.entry(name, limit, over); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(a.tar)
	if err != nil {
		return nil, a.fail(ota.BadArchive, "%s: %w", name, err)
	}
	return b, nil
}

// finish checks that nothing follows the last image.
func (a *Reader) finish() error {
	if h, err := a.tar.Next(); err == nil {
		return a.fail(ota.WrongOrder, "file %.80q after the last image: want the end of the archive", h.Name)
	} else if !errors.Is(err, io.EOF) {
		return a.fail(ota.BadArchive, "after the last image: %w", err)
	}
	rest, err := io.Copy(zeros{}, io.LimitReader(a.src, maxPadding+1))
	if err != nil || rest > maxPadding {
		return a.fail(ota.BadArchive, "data after the end of the archive, at byte %d", a.Consumed())
	}
	a.err = io.EOF
	return a.err
}

// zeros takes nothing but zeros.
type zeros struct{}

func (zeros) Write(p []byte) (int, error) {
	if len(bytes.TrimLeft(p, "\x00")) > 0 {
		return 0, errors.New("not zero")
	}
	return len(p), nil
}

// fail ends the reading. An error of the reader below explains any fault that follows from it.
func (a *Reader) fail(c ota.Code, format string, args ...any) error {
	a.err = ota.Fail(c, format, args...)
	if a.src.err != nil && a.src.err != io.EOF {
		a.err = &sourceError{a.Consumed(), a.src.err}
	}
	return a.err
}

// sourceError wraps an error of the reader below. It is never io.EOF, although what it wraps may be, as when a connection is closed: io.EOF says that
// all is well.
type sourceError struct {
	at  int64
	err error
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("read the archive at byte %d: %v", e.at, e.err)
}
func (e *sourceError) Is(target error) bool { return target != io.EOF && errors.Is(e.err, target) }
func (e *sourceError) As(target any) bool   { return errors.As(e.err, target) }

// cut reports whether err says that the archive ends inside an entry.
func (a *Reader) cut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) && a.src.err == io.EOF
}

// Image is one image of an archive, decrypted and decompressed.
type Image struct {
	manifest.Image
	Size int64 // of its file in the archive

	a    *Reader
	gz   *gzip.Reader
	hash hash.Hash
	left int64
	end  error
}

// Read gives out the image. It returns io.EOF only when length and hash are those of the manifest: no image may be put to use before.
func (i *Image) Read(p []byte) (int, error) {
	if i.end != nil {
		return 0, i.end
	}
	if i.left > 0 {
		n, err := i.gz.Read(p[:min(int64(len(p)), i.left)])
		i.hash.Write(p[:n])
		i.left -= int64(n)
		if err != nil && (!errors.Is(err, io.EOF) || i.left > 0) {
			return n, i.damaged(err)
		}
		return n, nil
	}
	for {
		switch n, err := i.gz.Read(make([]byte, 1)); {
		case n > 0:
			i.end = i.a.fail(ota.NotAuthentic, "image %s is longer than %d bytes, which the manifest says", i.Part, i.Bytes)
		case errors.Is(err, io.EOF) && !bytes.Equal(i.hash.Sum(nil), i.SHA256[:]):
			i.end = i.a.fail(ota.NotAuthentic, "image %s has SHA-256 %x; the manifest says %s", i.Part, i.hash.Sum(nil), i.SHA256)
		case errors.Is(err, io.EOF):
			i.end = io.EOF
		case err != nil:
			return 0, i.damaged(err)
		default:
			continue
		}
		return 0, i.end
	}
}

// damaged says what an error of the decompression means.
func (i *Image) damaged(err error) error {
	var corrupt flate.CorruptInputError
	at := i.Bytes - i.left
	switch {
	case i.a.cut(err):
		i.end = i.a.fail(ota.BadArchive, "the archive ends after %d bytes, in %s", i.a.Consumed(), i.Part.File())
	case errors.Is(err, io.EOF) && i.gz != nil:
		i.end = i.a.fail(ota.NotAuthentic, "image %s has %d bytes; the manifest says %d", i.Part, at, i.Bytes)
	case errors.Is(err, io.EOF):
		i.end = i.a.fail(ota.BadCompression, "the file of image %s is empty", i.Part)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		i.end = i.a.fail(ota.BadCompression, "decompress image %s after %d bytes: %w", i.Part, at, err)
	default:
		i.end = i.a.fail(ota.Decompressor, "decompress image %s after %d bytes: %w", i.Part, at, err)
	}
	return i.end
}

// source counts what is read, and remembers how it ended.
type source struct {
	r   io.Reader
	n   atomic.Int64
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n.Add(int64(n))
	if n > 0 && err == io.EOF {
		return n, nil // as bodies of HTTP end; who reads on meets the end
	}
	if err != nil {
		s.err = err
	}
	return n, err
}
