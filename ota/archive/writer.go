package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"crypto"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"

	"kennel/ota"
	"kennel/ota/manifest"
)

// WriteOptions are what Write must know.
type WriteOptions struct {
	Key      crypto.Signer // an RSA key
	Password []byte        // encrypts all images; none: they are not encrypted
	Level    int           // of gzip, 1 to 9; 0 is the usual one
	Flush    int64         // bytes of an image from one place at which it can be continued to the next; 0: 4 MB
	TempDir  string        // for the compressed images; "" is the system's
}

// Write writes an archive of images, which are those of one kind of update. m says what Write cannot know: the version, the flags, and for a delta the base
// in Images[0]; Write sets Format, if it is empty, and Images. The same input gives the same bytes.
//
// Each image is read once, from its start to its end, and its compressed form is kept in a temporary file, because an archive begins with hashes and lengths.
func Write(w io.Writer, m *manifest.Manifest, images map[manifest.Part]io.Reader, o WriteOptions) (err error) {
	var base manifest.Image
	if len(m.Images) > 0 {
		base = m.Images[0]
	}
	m.Format = cmp.Or(m.Format, manifest.Formats[len(manifest.Formats)-1])
	m.Images = nil
	for _, k := range []manifest.Kind{manifest.Delta, manifest.Production, manifest.Factory} {
		if parts := k.Parts(); len(parts) == len(images) && !slices.ContainsFunc(parts, func(p manifest.Part) bool { return images[p] == nil }) {
			for _, p := range parts {
				m.Images = append(m.Images, manifest.Image{Part: p, Encrypted: len(o.Password) > 0})
			}
		}
	}
	if m.Images == nil {
		return ota.Fail(ota.BadManifest, "want the image DELTA, or BOOT and SYSTEM, or ABOOT, RECOVERY and RECOVERYFS")
	}
	if m.Kind() == manifest.Delta {
		m.Images[0].Base = base.Base
	}
	for n := range m.Images {
		m.Images[n].Bytes = 1
	}
	if _, err := m.Encode(); err != nil { // a fault of the caller's is found before the long work
		return err
	}
	packed := make([]*os.File, len(m.Images))
	defer func() {
		for _, f := range packed {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	for n := range m.Images {
		i := &m.Images[n]
		if packed[n], err = temporary(o.TempDir); err != nil {
			return err
		}
		if err := compress(packed[n], images[i.Part], i, o.Level, cmp.Or(o.Flush, flush)); err != nil {
			return fmt.Errorf("pack image %s: %w", i.Part, err)
		}
	}
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	t, err := begin(w, raw, o.Key)
	if err != nil {
		return err
	}
	for n, i := range m.Images {
		if err := add(t, i, packed[n], o.Password); err != nil {
			return fmt.Errorf("pack image %s: %w", i.Part, err)
		}
	}
	return t.Close()
}

// temporary returns a file that has no name any longer, so that it is gone when it is closed.
func temporary(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "ota-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// flush is no multiple of the window: a reader whose window is full when the flush comes has nothing left to give out, and does not see it.
const flush = 4_000_000

// compress reads an image and fills in its length and hash.
func compress(w io.Writer, r io.Reader, i *manifest.Image, level int, flush int64) error {
	z, err := gzip.NewWriterLevel(w, cmp.Or(level, gzip.DefaultCompression))
	if err != nil {
		return err
	}
	h := sha256.New()
	i.Bytes = 0
	for buf := make([]byte, readSize); ; {
		n, err := io.CopyBuffer(io.MultiWriter(z, h), onlyReader{io.LimitReader(r, flush)}, buf)
		if i.Bytes += n; err != nil {
			return err
		} else if n < flush {
			break
		}
		if err := z.Flush(); err != nil {
			return err
		}
	}
	h.Sum(i.SHA256[:0])
	return z.Close()
}

// onlyReader hides a WriterTo, which would ignore the buffer.
type onlyReader struct{ io.Reader }

// begin writes the manifest and its signature.
func begin(w io.Writer, raw []byte, key crypto.Signer) (*tar.Writer, error) {
	signature, err := manifest.Sign(key, raw)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(w)
	if err := file(t, ManifestFile, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	return t, file(t, SignatureFile, int64(len(signature)), bytes.NewReader(signature))
}

// add writes a compressed image, encrypted if there is a password. The salt follows from image and password: equal input gives equal archives, and two images
// are never encrypted under one key stream.
func add(t *tar.Writer, i manifest.Image, f *os.File, password []byte) error {
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	body := io.Reader(bufio.NewReaderSize(f, readSize))
	if i.Encrypted {
		sum := sha256.Sum256(slices.Concat([]byte(i.Part), i.SHA256[:], password))
		salt := sum[:saltSize]
		s, err := stream(password, salt)
		if err != nil {
			return err
		}
		size += int64(len(salted) + saltSize)
		body = io.MultiReader(bytes.NewReader(append([]byte(salted), salt...)), cipher.StreamReader{S: s, R: body})
	}
	return file(t, i.Part.File(), size, body)
}

// file writes one file as every archive has it: all that could differ between two machines is left out.
func file(t *tar.Writer, name string, size int64, body io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{t}, onlyReader{body}, make([]byte, readSize))
	return err
}

// Resign copies an archive with its manifest signed by key. The images are copied without a look inside; Open and Next on the copy show whether they are
// those of the manifest.
func Resign(w io.Writer, r io.Reader, key crypto.Signer) error {
	a, err := Open(r, Options{Unverified: true})
	if err != nil {
		return err
	}
	t, err := begin(w, a.Raw, key)
	if err != nil {
		return err
	}
	for _, i := range a.Manifest.Images {
		h, err := a.entry(i.Part.File(), maxFile(i), ota.BadArchive)
		if err != nil {
			return err
		}
		if err := file(t, i.Part.File(), h.Size, a.tar); err != nil {
			return fmt.Errorf("copy %s: %w", i.Part.File(), err)
		}
	}
	if err := a.finish(); !errors.Is(err, io.EOF) {
		return err
	}
	return t.Close()
}
