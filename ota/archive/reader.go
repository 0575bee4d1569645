package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/cipher"
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
	window     = 32 << 10 // before a block that it may repeat
	maxPadding = 1 << 20  // zeros behind the archive: tar fills its last record, of 10 KiB unless told otherwise
)

// Options are what a Reader must know.
type Options struct {
	Key        *rsa.PublicKey // the manifest must be signed with it
	Unverified bool           // take any manifest: to look at an archive, never to install it
	Password   []byte         // of encrypted images; see Password
	Resume     *Point         // r begins there; nil: at the start of the archive
}

// Point is a place in an archive at which a Reader can begin, and what was read before it.
type Point struct {
	Raw, Signature []byte  // as in Reader; they are verified again
	Images         int     // that were read before
	At             int64   // byte of the archive, as Reader.Offset or Image.Mark returned it
	Inside         *Inside // nil: between two images
}

// Inside is a place within an image at which its decompression can begin: the end of a block, where the writer flushed.
type Inside struct {
	Bytes int64  `json:"bytes"`          // of the image before it
	File  int64  `json:"file"`           // bytes of the image's file before it
	Size  int64  `json:"size"`           // of that file
	Salt  []byte `json:"salt,omitempty"` // of an encrypted image
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
	images   int     // returned so far
	next     int64   // byte at which the next file begins
	now      *Image  // the last of them
	inside   *Inside // of the next image; nil: it is read from its start
	torn     bool    // tar does not know the file that was continued
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
		a.Raw, a.Signature, a.images, a.next, a.inside = p.Raw, p.Signature, p.Images, p.At, p.Inside
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
		return nil, a.fail(ota.Other, "continue after %d images: the manifest has only %d", a.images, len(a.Manifest.Images))
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
		return nil, a.fail(ota.Other, "image %s was not read to the end", a.now.Part)
	}
	if err := a.after(); err != nil {
		return nil, err
	}
	if a.images == len(a.Manifest.Images) {
		return nil, a.finish()
	}
	i := &Image{Image: a.Manifest.Images[a.images], a: a, hash: sha256.New()}
	i.left = i.Bytes
	if a.inside != nil {
		i.from, a.inside, a.torn, a.now = a.inside, nil, true, i
		a.images++
		return i, nil
	}
	h, err := a.entry(i.Part.File(), maxFile(i.Image), ota.BadArchive)
	if err != nil {
		return nil, err
	}
	i.Size = h.Size
	i.in = &feed{r: a.tar}
	if i.Encrypted {
		if i.in.r, i.salt, err = a.decrypt(i); err != nil {
			return nil, err
		}
		i.in.n = int64(len(salted) + saltSize)
	}
	i.buf = bufio.NewReaderSize(i.in, readSize)
	gz, err := gzip.NewReader(i.buf)
	if err != nil {
		return nil, i.damaged(err)
	}
	i.gz = gz
	a.now = i
	a.images++
	return i, nil
}

// maxFile bounds an image's file: compression adds little to what cannot be compressed, and a longer file would only keep the robot busy.
func maxFile(i manifest.Image) int64 { return i.Bytes + i.Bytes/64 + 4096 }

func (a *Reader) decrypt(i *Image) (r io.Reader, salt []byte, err error) {
	if len(a.password) == 0 {
		return nil, nil, a.fail(ota.BadEncryption, "image %s is encrypted: want a password", i.Part)
	}
	head := make([]byte, len(salted)+saltSize)
	if n, err := io.ReadFull(a.tar, head); err != nil && a.cut(err) {
		return nil, nil, a.fail(ota.BadArchive, "the archive ends after %d bytes, in %s", a.Consumed(), i.Part.File())
	} else if err != nil || !bytes.HasPrefix(head, []byte(salted)) {
		return nil, nil, a.fail(ota.BadEncryption, "image %s starts with %.16q: want %s and %d bytes of salt", i.Part, head[:n], salted, saltSize)
	}
	salt = head[len(salted):]
	r, err = decrypter(a.tar, a.password, salt)
	return r, salt, err
}

// after moves behind the file that was continued.
func (a *Reader) after() error {
	if !a.torn {
		return nil
	}
	if _, err := io.CopyN(io.Discard, a.src, a.next-a.Consumed()); err != nil {
		return a.fail(ota.BadArchive, "the archive ends after %d bytes, in %s", a.Consumed(), a.now.Part.File())
	}
	a.tar, a.torn = tar.NewReader(a.src), false
	return nil
}

// entry moves to the next file, which must be the named one and have at most limit bytes, otherwise the code is over.
func (a *Reader) entry(name string, limit int64, over ota.Code) (*tar.Header, error) {
	h, err := a.tar.Next()
	switch {
	case errors.Is(err, io.EOF) && a.src.err != nil: // without the two empty blocks that end a tar
		return nil, a.fail(ota.BadArchive, "the archive ends after %d bytes: want %s", a.Consumed(), name)
	case errors.Is(err, io.EOF):
		return nil, a.fail(ota.WrongOrder, "the archive has no further file: want %s", name)
	case err != nil:
		return nil, a.fail(ota.BadArchive, "header of %s at byte %d: %w", name, a.Consumed(), err)
	case strings.TrimPrefix(h.Name, "./") != name:
		return nil, a.fail(ota.WrongOrder, "file %.80q: want %s", h.Name, name)
	case h.Typeflag != tar.TypeReg || sparse(h):
		return nil, a.fail(ota.BadArchive, "%s is not a regular file, or is sparse", name)
	case h.Size > limit:
		return nil, a.fail(over, "%s has %d bytes: want at most %d", name, h.Size, limit)
	}
	a.next = a.Consumed() + padded(h.Size)
	return h, nil
}

// padded is the room of a file in a tar.
func padded(size int64) int64 { return (size + 511) / 512 * 512 }

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
	in   *feed
	buf  *bufio.Reader // of in
	gz   io.Reader     // of buf
	salt []byte
	hash hash.Hash
	left int64
	mark *Inside // the last place at which it can be continued; nil: none so far
	from *Inside // it is continued there, and Continue was not called yet; nil: it is not
	end  error
}

// feed counts what is read, and keeps the last piece.
type feed struct {
	r    io.Reader
	n    int64
	last []byte // in the memory of the reader above
}

func (f *feed) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.n, f.last = f.n+int64(n), p[:n]
	return n, err
}

// Continues returns the bytes of the image that an earlier Reader gave out; if there are any, Continue must be called before Read.
func (i *Image) Continues() int64 {
	if i.from == nil {
		return 0
	}
	return i.from.Bytes
}

// Continue takes what the earlier Reader gave out of the image. If that is damaged, the image ends with a wrong hash.
func (i *Image) Continue(before io.ReaderAt) error {
	a, p := i.a, i.from
	start := a.Consumed() - p.File // of the file, in the archive
	if p.Bytes <= 0 || p.Bytes > i.Bytes || p.File < 0 || p.File > p.Size || p.Size > maxFile(i.Image) || start < 0 ||
		i.Encrypted && p.File < int64(len(salted)+saltSize) {
		return a.fail(ota.Other, "image %s cannot be continued after %d of %d bytes", i.Part, p.Bytes, i.Bytes)
	}
	dict := make([]byte, min(window, p.Bytes))
	_, err := io.CopyBuffer(struct{ io.Writer }{i.hash}, struct{ io.Reader }{io.NewSectionReader(before, 0, p.Bytes)}, make([]byte, readSize))
	if err == nil {
		_, err = before.ReadAt(dict, p.Bytes-int64(len(dict)))
	}
	if err != nil {
		return a.fail(ota.DiskFailed, "image %s before byte %d: %w", i.Part, p.Bytes, err)
	}
	i.Size, i.left, i.from, i.salt, a.next = p.Size, i.Bytes-p.Bytes, nil, p.Salt, start+padded(p.Size)
	i.in = &feed{r: io.LimitReader(a.src, p.Size-p.File), n: p.File}
	if i.Encrypted {
		s, err := stream(a.password, p.Salt)
		if err != nil {
			return a.fail(ota.BadEncryption, "image %s: %w", i.Part, err)
		}
		skip := p.File - int64(len(salted)+saltSize)
		for b := make([]byte, min(window, skip)); skip > 0; skip -= int64(len(b)) {
			b = b[:min(skip, int64(len(b)))]
			s.XORKeyStream(b, b)
		}
		i.in.r = cipher.StreamReader{S: s, R: i.in.r}
	}
	i.buf = bufio.NewReaderSize(i.in, readSize)
	i.gz = flate.NewReaderDict(i.buf, dict)
	return nil
}

// Mark returns the last place at which the image can be continued, and its byte of the archive.
func (i *Image) Mark() (p Inside, at int64, ok bool) {
	if i.mark == nil {
		return p, 0, false
	}
	return *i.mark, i.a.next - padded(i.Size) + i.mark.File, true
}

// note notes a place where decompression can begin: a block of no bytes, with which writers flush, was the last that was read, and all before it was
// given out. That other data look the same has next to no chance, and would end with a wrong hash.
func (i *Image) note() {
	k := len(i.in.last) - i.buf.Buffered()
	if k >= 4 && string(i.in.last[k-4:k]) == "\x00\x00\xff\xff" {
		i.mark = &Inside{Bytes: i.Bytes - i.left, File: i.in.n - int64(i.buf.Buffered()), Size: i.Size, Salt: i.salt}
	}
}

// Read gives out the image. It returns io.EOF only when length and hash are those of the manifest: no image may be put to use before.
func (i *Image) Read(p []byte) (int, error) {
	if i.end != nil {
		return 0, i.end
	}
	if i.from != nil {
		return 0, i.a.fail(ota.Other, "image %s was not continued", i.Part)
	}
	if i.left > 0 {
		p = p[:min(int64(len(p)), i.left)]
		n, err := i.gz.Read(p)
		i.hash.Write(p[:n])
		if i.left -= int64(n); n < len(p) {
			i.note()
		}
		if err != nil && (!errors.Is(err, io.EOF) || i.left > 0) {
			return n, i.damaged(err)
		}
		return n, nil
	}
	for {
		switch n, err := i.gz.Read(make([]byte, 1)); {
		case n > 0:
			i.end = i.a.fail(ota.NotAuthentic, "image %s is longer than the %d bytes of the manifest", i.Part, i.Bytes)
		case errors.Is(err, io.EOF) && !bytes.Equal(i.hash.Sum(nil), i.SHA256[:]):
			i.end = i.a.fail(ota.NotAuthentic, "image %s has SHA-256 %x: want %s, as in the manifest", i.Part, i.hash.Sum(nil), i.SHA256)
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
		i.end = i.a.fail(ota.NotAuthentic, "image %s has %d bytes: want %d, as in the manifest", i.Part, at, i.Bytes)
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
