package delta

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"kennel/ota"
)

const (
	magic     = "KNLDELTA\x01" // with the version
	maxImages = 8
	maxName   = 64
	maxChunk  = 8 << 20          // of new data
	maxRanges = 1 << 20          // bytes
	maxPatch  = maxChunk + 1<<16 // bytes, compressed or not
	headSize  = 1 + 8 + 3*4 + 2*sha256.Size
	imageSize = 2 * (8 + sha256.Size)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Content describes one side of an image.
type Content struct {
	Size   int64
	SHA256 [sha256.Size]byte
}

// Image is a partition that a delta changes.
type Image struct {
	Name      string
	Base, New Content
}

// Summary says what a delta contains.
type Summary struct {
	Images []Image
	Chunks int
	Kept   int // chunks that the target held already
}

// chunk is the part of a delta that makes one piece of a new image.
type chunk struct {
	image              int
	offset             int64
	size               int
	prediction, result [sha256.Size]byte
	ranges, patch      []byte
}

// Inspect reads a whole delta and checks all that can be checked without its base. Its errors are of the code BadDelta, besides those of r.
func Inspect(r io.Reader) (Summary, error) {
	d, err := newReader(r)
	if err != nil {
		return Summary{}, err
	}
	a := applier{reader: d}
	if a.zstd, err = newDecoder(); err != nil {
		return d.Summary, ota.Fail(ota.Decompressor, "start zstd: %w", err)
	}
	defer a.zstd.Close()
	err = d.each(func(c *chunk) error {
		a.buf = resize(a.buf, c.size)
		if err := a.add(c); err != nil {
			return c.fail(d.Images[c.image], "patch: %w", err)
		}
		return c.copies(d.Images[c.image].Base.Size, func(_, _ int, _ int64) error { return nil })
	})
	return d.Summary, err
}

// Apply reads a delta from r and writes the new images. It calls open once for each image, with its name and sizes, before it writes anything: base is the
// running slot's partition, target the other slot's. If target is also an io.ReaderAt, as a file is, the chunks at its start that it holds
// already are kept, so that an update that was cut off continues there.
//
// Apply uses at most three times the size of the largest chunk as memory, and does not close or sync what it was given. Errors carry a code: WrongBase
// before anything is written unless the base changes in the meantime, BadDelta if the delta is damaged, and DiskFailed if base or target fails. Errors of
// r and open keep their own. After an error the target is incomplete; no result that is not the one Make saw is ever reported as success.
func Apply(r io.Reader, open func(Image) (base io.ReaderAt, target io.WriterAt, err error)) (Summary, error) {
	d, err := newReader(r)
	if err != nil {
		return Summary{}, err
	}
	a := applier{reader: d, bases: make([]io.ReaderAt, len(d.Images)), targets: make([]io.WriterAt, len(d.Images)), keep: true}
	for i, m := range d.Images {
		if a.bases[i], a.targets[i], err = open(m); err != nil {
			return d.Summary, fmt.Errorf("open %s: %w", m.Name, err)
		}
	}
	for i, m := range d.Images {
		if err := checkBase(a.bases[i], m); err != nil {
			return d.Summary, err
		}
	}
	if a.zstd, err = newDecoder(); err != nil {
		return d.Summary, ota.Fail(ota.Decompressor, "start zstd: %w", err)
	}
	defer a.zstd.Close()
	err = d.each(a.apply)
	return d.Summary, err
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxPatch),
		zstd.WithDecoderMaxMemory(maxPatch), zstd.WithDecodeAllCapLimit(true))
}

func checkBase(base io.ReaderAt, m Image) error {
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{io.NewSectionReader(base, 0, m.Base.Size)}, make([]byte, 256<<10))
	switch {
	case err != nil:
		return ota.Fail(ota.DiskFailed, "read the base of %s: %w", m.Name, err)
	case n < m.Base.Size:
		return ota.Fail(ota.WrongBase, "the base of %s has %d bytes: want %d", m.Name, n, m.Base.Size)
	case [sha256.Size]byte(sum.Sum(nil)) != m.Base.SHA256:
		return ota.Fail(ota.WrongBase, "the base of %s has SHA-256 %x: want %x", m.Name, sum.Sum(nil), m.Base.SHA256)
	}
	return nil
}

// applier holds the memory that one Apply needs.
type applier struct {
	*reader
	bases   []io.ReaderAt
	targets []io.WriterAt
	keep    bool // all chunks so far were in the target already
	zstd    *zstd.Decoder
	buf     []byte // prediction, then result, of a chunk
	patch   []byte
	whole   hash.Hash // of the new image so far
}

func (a *applier) apply(c *chunk) error {
	m, target := a.Images[c.image], a.targets[c.image]
	if c.offset == 0 {
		a.whole = sha256.New()
	}
	a.buf = resize(a.buf, c.size)
	if !a.held(c) {
		if err := a.predict(c, m); err != nil {
			return err
		}
		if err := a.add(c); err != nil {
			return c.fail(m, "patch: %w", err)
		}
		if sum := sha256.Sum256(a.buf); sum != c.result {
			return c.fail(m, "result has SHA-256 %x: want %x", sum, c.result)
		}
		if _, err := target.WriteAt(a.buf, c.offset); err != nil {
			return ota.Fail(ota.DiskFailed, "write %s at byte %d: %w", m.Name, c.offset, err)
		}
	}
	a.whole.Write(a.buf)
	if c.offset+int64(c.size) == m.New.Size {
		if sum := a.whole.Sum(nil); [sha256.Size]byte(sum) != m.New.SHA256 {
			return ota.Fail(ota.BadDelta, "the new %s has SHA-256 %x: want %x", m.Name, sum, m.New.SHA256)
		}
	}
	return nil
}

// held reports whether the target holds the chunk; it is then in a.buf.
func (a *applier) held(c *chunk) bool {
	t, ok := a.targets[c.image].(io.ReaderAt)
	if !ok || !a.keep {
		return false
	}
	if n, _ := t.ReadAt(a.buf, c.offset); n < c.size || sha256.Sum256(a.buf) != c.result { // unreadable is not held
		a.keep = false
		return false
	}
	a.Kept++
	return true
}

// predict copies the ranges of the base into a.buf and checks them.
func (a *applier) predict(c *chunk, m Image) error {
	clear(a.buf)
	err := c.copies(m.Base.Size, func(at, n int, from int64) error {
		if n, err := a.bases[c.image].ReadAt(a.buf[at:at+n], from); n < len(a.buf[at:at+n]) && errors.Is(err, io.EOF) {
			return ota.Fail(ota.WrongBase, "the base of %s ends before byte %d", m.Name, from+int64(n))
		} else if err != nil && !errors.Is(err, io.EOF) {
			return ota.Fail(ota.DiskFailed, "read the base of %s at byte %d: %w", m.Name, from, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(a.buf); sum != c.prediction { // the chunk is not damaged: its CRC is right
		return ota.Fail(ota.WrongBase, "the base of %s for byte %d of the new one has SHA-256 %x: want %x", m.Name, c.offset, sum, c.prediction)
	}
	return nil
}

// add adds the patch to a.buf.
func (a *applier) add(c *chunk) error {
	if len(c.patch) == 0 {
		return nil
	}
	var h zstd.Header
	if err := h.Decode(c.patch); err != nil {
		return err
	}
	if !h.HasFCS || h.FrameContentSize > maxPatch {
		return fmt.Errorf("frame of unknown size, or of %d bytes: want at most %d", h.FrameContentSize, maxPatch)
	}
	a.patch = resize(a.patch, int(h.FrameContentSize))
	p, err := a.zstd.DecodeAll(c.patch, a.patch[:0:len(a.patch)])
	if err != nil {
		return err
	}
	steps, n := binary.Uvarint(p)
	if n <= 0 || steps > uint64(len(p)-n) {
		return errors.New("the steps are longer than the patch")
	}
	v, addends, at := varints{b: p[n : n+int(steps)]}, p[n+int(steps):], 0
	for len(v.b) > 0 {
		skip, count := v.unsigned(len(a.buf)-at), v.unsigned(len(addends))
		at += skip
		if v.bad || count > len(a.buf)-at {
			return errors.New("step outside the chunk")
		}
		for i, x := range addends[:count] {
			a.buf[at+i] += x
		}
		at, addends = at+count, addends[count:]
	}
	if len(addends) > 0 {
		return fmt.Errorf("%d bytes left over", len(addends))
	}
	return nil
}

// copies calls fn for each range: n bytes from the base into the prediction at position at.
func (c *chunk) copies(base int64, fn func(at, n int, from int64) error) error {
	v, at, from := varints{b: c.ranges}, 0, c.offset
	for len(v.b) > 0 {
		at += v.unsigned(c.size - at)
		n := v.unsigned(c.size - at)
		from += v.signed()
		if v.bad || from < 0 || from > base || int64(n) > base-from {
			return ota.Fail(ota.BadDelta, "chunk at byte %d: range outside the base or the chunk", c.offset)
		}
		if err := fn(at, n, from); err != nil {
			return err
		}
		at, from = at+n, from+int64(n)
	}
	return nil
}

func (c *chunk) fail(m Image, format string, args ...any) error {
	return ota.Fail(ota.BadDelta, "%s at byte %d: %w", m.Name, c.offset, fmt.Errorf(format, args...))
}

// varints takes numbers from b; bad is set for good when one is not as it should be.
type varints struct {
	b   []byte
	bad bool
}

func (v *varints) unsigned(most int) int {
	x, n := binary.Uvarint(v.b)
	if n <= 0 || x > uint64(most) {
		v.b, v.bad = nil, true
		return 0
	}
	v.b = v.b[n:]
	return int(x)
}

func (v *varints) signed() int64 {
	x, n := binary.Varint(v.b)
	if n <= 0 || x > 1<<48 || x < -1<<48 {
		v.b, v.bad = nil, true
		return 0
	}
	v.b = v.b[n:]
	return x
}

// resize returns n bytes, in the memory of b if that is enough.
func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// reader takes a delta apart. It checks every size before it takes memory.
type reader struct {
	r   io.Reader
	crc uint32
	Summary
	body []byte // ranges and patch of the current chunk
}

// read fills b.
func (d *reader) read(b []byte) error {
	switch _, err := io.ReadFull(d.r, b); {
	case err == io.EOF, err == io.ErrUnexpectedEOF: // not those that r wrapped: it knows better what they mean
		return ota.Fail(ota.BadDelta, "the delta is truncated")
	case err != nil:
		return fmt.Errorf("read the delta: %w", err)
	}
	d.crc = crc32.Update(d.crc, castagnoli, b)
	return nil
}

// checkSum reads the CRC of what was read since the last one.
func (d *reader) checkSum(of string) error {
	want, b := d.crc, [4]byte{}
	if err := d.read(b[:]); err != nil {
		return err
	}
	d.crc = 0
	if got := binary.BigEndian.Uint32(b[:]); got != want {
		return ota.Fail(ota.BadDelta, "the %s of the delta is damaged: CRC %08x, want %08x", of, want, got)
	}
	return nil
}

// newReader reads the header.
func newReader(r io.Reader) (*reader, error) {
	d := &reader{r: r}
	var b [len(magic) + 1]byte
	if err := d.read(b[:]); err != nil {
		return nil, err
	}
	count := int(b[len(magic)])
	if string(b[:len(magic)]) != magic || count < 1 || count > maxImages {
		return nil, ota.Fail(ota.BadDelta, "the delta starts with %x: want %x and a number from 1 to %d", b, magic, maxImages)
	}
	for range count {
		var n [1]byte
		if err := d.read(n[:]); err != nil {
			return nil, err
		}
		b := make([]byte, int(n[0])+imageSize)
		if err := d.read(b); err != nil {
			return nil, err
		}
		m := Image{Name: string(b[:n[0]])}
		for i, c := range []*Content{&m.Base, &m.New} {
			side := b[int(n[0])+i*(8+sha256.Size):]
			c.Size = int64(binary.BigEndian.Uint64(side))
			copy(c.SHA256[:], side[8:])
		}
		d.Images = append(d.Images, m)
	}
	if err := d.checkSum("header"); err != nil {
		return nil, err
	}
	return d, checkImages(d.Images)
}

// checkImages checks what Make and Apply expect of images.
func checkImages(images []Image) error {
	if len(images) < 1 || len(images) > maxImages {
		return ota.Fail(ota.BadDelta, "%d images: want 1 to %d", len(images), maxImages)
	}
	seen := map[string]bool{}
	for _, m := range images {
		if m.Name == "" || len(m.Name) > maxName || seen[m.Name] || m.Base.Size < 0 || m.New.Size < 0 || max(m.Base.Size, m.New.Size) > 1<<40 {
			return ota.Fail(ota.BadDelta, "image %.80q of %d bytes from a base of %d: want a unique name of 1 to %d bytes, and sizes of 0 to 1 TiB", m.Name, m.New.Size,
				m.Base.Size, maxName)
		}
		seen[m.Name] = true
	}
	return nil
}

// each reads the chunks and calls fn for each of them; what it is given is valid until it returns. The delta must end behind the last chunk.
func (d *reader) each(fn func(*chunk) error) error {
	for i, m := range d.Images {
		if m.New.Size == 0 && m.New.SHA256 != sha256.Sum256(nil) {
			return ota.Fail(ota.BadDelta, "the new %s is empty, but has another SHA-256", m.Name)
		}
		for at := int64(0); at < m.New.Size; {
			c, err := d.next(i, at)
			if err != nil {
				return err
			}
			if err := fn(c); err != nil {
				return err
			}
			d.Chunks++
			at += int64(c.size)
		}
	}
	var b [1]byte
	switch _, err := io.ReadFull(d.r, b[:]); {
	case err == nil:
		return ota.Fail(ota.BadDelta, "data after the end of the delta")
	case err != io.EOF:
		return fmt.Errorf("read the delta: %w", err)
	}
	return nil
}

// next reads the chunk for byte at of an image.
func (d *reader) next(image int, at int64) (*chunk, error) {
	var head [headSize]byte
	if err := d.read(head[:]); err != nil {
		return nil, err
	}
	be := binary.BigEndian
	size, ranges, patch := be.Uint32(head[9:]), be.Uint32(head[13:]), be.Uint32(head[17:])
	c := &chunk{image: image, offset: at, size: int(size)}
	m := d.Images[image]
	if int(head[0]) != image || be.Uint64(head[1:]) != uint64(at) || size == 0 || int64(size) > min(maxChunk, m.New.Size-at) || ranges > maxRanges ||
		patch > maxPatch {
		return nil, c.fail(m, "chunk of image %d at byte %d: %d bytes, %d bytes of ranges and a patch of %d: want at most %d, %d and %d",
			head[0], be.Uint64(head[1:]), size, ranges, patch, maxChunk, maxRanges, maxPatch)
	}
	copy(c.prediction[:], head[21:])
	copy(c.result[:], head[21+sha256.Size:])
	d.body = resize(d.body, int(ranges+patch))
	if err := d.read(d.body); err != nil {
		return nil, err
	}
	c.ranges, c.patch = d.body[:ranges], d.body[ranges:]
	return c, d.checkSum("chunk")
}

// append returns the chunk as it is in a delta.
func (c *chunk) append(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, byte(c.image))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.offset))
	for _, n := range []int{c.size, len(c.ranges), len(c.patch)} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(append(dst, c.prediction[:]...), c.result[:]...)
	dst = append(append(dst, c.ranges...), c.patch...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

func appendHeader(dst []byte, images []Image) []byte {
	dst = append(append(dst, magic...), byte(len(images)))
	for _, m := range images {
		dst = append(append(dst, byte(len(m.Name))), m.Name...)
		for _, c := range []Content{m.Base, m.New} {
			dst = append(binary.BigEndian.AppendUint64(dst, uint64(c.Size)), c.SHA256[:]...)
		}
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}
