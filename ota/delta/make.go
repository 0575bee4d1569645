package delta

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// chunkSize is the size of the chunks that Make writes. Larger ones make no smaller delta, and cost the robot memory.
const chunkSize = 1 << 20

// Data is the content of a partition: a bytes.Reader, or an io.SectionReader of a file.
type Data interface {
	io.ReaderAt
	Size() int64
}

// Part is a partition for Make.
type Part struct {
	Name      string
	Base, New Data
}

// Make writes the delta of parts to w. The same parts always make the same bytes. It holds one base at a time in memory, and an index of about a quarter
// of its size.
func Make(w io.Writer, parts ...Part) error {
	enc, err := newEncoder()
	if err != nil {
		return err
	}
	defer enc.Close()
	return write(w, enc, parts)
}

func write(w io.Writer, enc *zstd.Encoder, parts []Part) (err error) {
	var images []Image
	for _, p := range parts {
		m := Image{Name: p.Name}
		if m.Base, err = contentOf(p.Base); err != nil {
			return fmt.Errorf("read the base of %s: %w", p.Name, err)
		}
		if m.New, err = contentOf(p.New); err != nil {
			return fmt.Errorf("read the new %s: %w", p.Name, err)
		}
		images = append(images, m)
	}
	if err := checkImages(images); err != nil {
		return err
	}
	if _, err := w.Write(appendHeader(nil, images)); err != nil {
		return fmt.Errorf("write the delta: %w", err)
	}
	for i, p := range parts {
		base := make([]byte, images[i].Base.Size)
		if err := readAt(p.Base, base, 0); err != nil {
			return fmt.Errorf("read the base of %s: %w", p.Name, err)
		}
		m, data := newMatcher(base), make([]byte, chunkSize)
		for at := int64(0); at < images[i].New.Size; at += chunkSize {
			data = data[:min(chunkSize, images[i].New.Size-at)]
			if err := readAt(p.New, data, at); err != nil {
				return fmt.Errorf("read the new %s: %w", p.Name, err)
			}
			c := chunk{image: i, offset: at, size: len(data), result: sha256.Sum256(data)}
			c.encode(data, base, m.align(data), enc)
			if _, err := w.Write(c.append(nil)); err != nil {
				return fmt.Errorf("write the delta: %w", err)
			}
		}
	}
	return nil
}

func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxChunk),
		zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
}

func contentOf(d Data) (c Content, err error) {
	c.Size = d.Size()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(d, 0, c.Size)); err != nil {
		return c, err
	}
	sum.Sum(c.SHA256[:0])
	return c, nil
}

func readAt(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	return nil
}

// encode sets ranges, prediction and patch so that they make data.
func (c *chunk) encode(data, base []byte, spans []span, enc *zstd.Encoder) {
	guess := make([]byte, len(data))
	at, from := 0, int(c.offset)
	for _, s := range spans {
		c.ranges = binary.AppendUvarint(c.ranges, uint64(s.at-at))
		c.ranges = binary.AppendUvarint(c.ranges, uint64(s.n))
		c.ranges = binary.AppendVarint(c.ranges, int64(s.from-from))
		copy(guess[s.at:s.at+s.n], base[s.from:])
		at, from = s.at+s.n, s.from+s.n
	}
	if len(c.ranges) > maxRanges {
		c.ranges = nil
		clear(guess)
	}
	c.prediction = sha256.Sum256(guess)
	if c.prediction == c.result {
		return
	}
	for i, x := range data {
		guess[i] = x - guess[i]
	}
	c.patch = enc.EncodeAll(patchOf(guess), nil)
}

// patchOf returns the steps and addends of diff, as in a frame.
func patchOf(diff []byte) []byte {
	const gap = 4 // shorter runs of zeros are cheaper as addends than as a step
	var steps, addends []byte
	for at := 0; at < len(diff); {
		start := at
		for start < len(diff) && diff[start] == 0 {
			start++
		}
		end := start
		for i := start; i < len(diff) && i-end < gap; i++ {
			if diff[i] != 0 {
				end = i + 1
			}
		}
		if start == len(diff) {
			break
		}
		steps = binary.AppendUvarint(steps, uint64(start-at))
		steps = binary.AppendUvarint(steps, uint64(end-start))
		addends = append(addends, diff[start:end]...)
		at = end
	}
	return append(append(binary.AppendUvarint(nil, uint64(len(steps))), steps...), addends...)
}

// span says that data[at:at+n] is much like base[from:from+n].
type span struct{ at, n, from int }

// A block of the base is found again wherever it is in new data.
const (
	block  = 32
	minWin = 8 // bytes that another place in the base must fit better than the current one
	prime  = 0x9E3779B97F4A7C15
)

// matcher finds data in a base. It works like bsdiff, with a table of hashes instead of a suffix array: where data is found again, the match is extended
// to both sides for as long as most of the bytes are equal.
type matcher struct {
	base  []byte
	table []uint32 // by hash: number of a block with that hash, from 1
	shift int
	out   uint64 // takes the first byte out of a hash
	next  int    // in the base, for the first byte of the next data
}

func newMatcher(base []byte) *matcher {
	n := bits.Len(uint(len(base) / block))
	m := &matcher{base: base, table: make([]uint32, 1<<n), shift: 64 - n, out: 1}
	for range block {
		m.out *= prime
	}
	for i := len(base)/block - 1; i >= 0; i-- { // the first of equal ones stays
		if b := base[i*block:][:block]; bytes.Count(b, b[:1]) < block {
			*m.find(hashOf(b)) = uint32(i + 1)
		}
	}
	return m
}

func hashOf(b []byte) (h uint64) {
	for _, c := range b {
		h = h*prime + uint64(c) + 1
	}
	return h
}

func (m *matcher) find(h uint64) *uint32 {
	return &m.table[h*0xD6E8FEB86659FD93>>m.shift]
}

// align returns what parts of data are like what parts of the base, in order. Data of one image comes in order, too: at first it is expected where the
// data before it ended.
func (m *matcher) align(data []byte) (spans []span) {
	var h uint64
	hashed := -1             // where in data h begins
	start, from := 0, m.next // the current alignment
	for at := 0; at < len(data); at++ {
		old := from + at - start
		if n := equal(data[at:], m.base, old); n >= minWin || at+n == len(data) {
			at += n - 1
			continue
		}
		if at+block > len(data) {
			break
		}
		if hashed >= 0 && hashed == at-1 {
			h = h*prime + uint64(data[at+block-1]) + 1 - m.out*(uint64(data[at-1])+1)
		} else {
			h = hashOf(data[at:][:block])
		}
		hashed = at
		if i := int(*m.find(h)); i > 0 && m.better(data[at:], (i-1)*block, old) {
			ahead, back := m.extend(data, start, from, at, (i-1)*block)
			if ahead > 0 {
				spans = append(spans, span{start, ahead, from})
			}
			start, from = at-back, (i-1)*block-back
		}
	}
	if ahead, _ := m.extend(data, start, from, len(data), -1); ahead > 0 {
		spans = append(spans, span{start, ahead, from})
	}
	m.next = from + len(data) - start
	return spans
}

// equal returns how many bytes of data are equal to base from position at, which may be outside.
func equal(data, base []byte, at int) (n int) {
	if at < 0 || at >= len(base) {
		return 0
	}
	base = base[at:]
	for n < len(data) && n < len(base) && data[n] == base[n] {
		n++
	}
	return n
}

// better reports whether data fits position p of the base by at least a block, and minWin bytes better than position old.
func (m *matcher) better(data []byte, p, old int) bool {
	for n, same := 0, 0; n < len(data) && p+n < len(m.base) && data[n] == m.base[p+n]; n++ {
		if c := old + n; c >= 0 && c < len(m.base) && m.base[c] == data[n] {
			same++
		}
		if n+1 >= block && n+1-same > minWin {
			return true
		}
	}
	return false
}

// extend returns how far the alignment of data[start] to base[from] reaches ahead, and the one of data[at] to base[p] back, so that both together fit
// best. p < 0: there is no second one.
func (m *matcher) extend(data []byte, start, from, at, p int) (ahead, back int) {
	base := m.base
	for i, score, best := 0, 0, 0; start+i < at && from+i < len(base); i++ {
		score += fits(data[start+i], base[from+i])
		if score > best {
			best, ahead = score, i+1
		}
	}
	if p >= 0 {
		for i, score, best := 1, 0, 0; at-i >= start && p-i >= 0; i++ {
			score += fits(data[at-i], base[p-i])
			if score > best {
				best, back = score, i
			}
		}
	}
	if over := start + ahead - (at - back); over > 0 { // cut both where they fit best
		cut, score, best := 0, 0, 0
		for i := range over {
			score += fits(data[at-back+i], base[from+ahead-over+i]) - fits(data[at-back+i], base[p-back+i])
			if score > best {
				best, cut = score, i+1
			}
		}
		ahead, back = ahead-over+cut, back-cut
	}
	return ahead, back
}

func fits(a, b byte) int {
	if a == b {
		return 1
	}
	return -1
}
