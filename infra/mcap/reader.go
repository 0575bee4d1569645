package mcap

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxRecord bounds a record, and a chunk's records, so that no number in a file makes a program take more memory.
const maxRecord = 256 << 20

// Reader reads the records of a recording in their order. Not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	at     uint64 // of the next byte
	crc    uint32 // of what was read of the data, or of the summary
	ended  bool   // the end of the file was read
	inside []byte // records of the chunk that are left
	chunk  uint64 // where it is
	unpack *zstd.Decoder

	schemas  map[uint16]bool
	channels map[uint16]*Channel
}

// NewReader reads the beginning of a recording. The error is ErrFormat for what is no MCAP file.
func NewReader(in io.Reader) (*Reader, error) {
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecord))
	if err != nil {
		return nil, err
	}
	r := &Reader{in: bufio.NewReader(in), unpack: unpack, schemas: map[uint16]bool{}, channels: map[uint16]*Channel{}}
	b := make([]byte, len(magic))
	if err := r.full(b); err != nil || string(b) != magic {
		return nil, r.bad(0, "it begins with %q, want %q", b, magic)
	}
	return r, nil
}

func (r *Reader) bad(at uint64, format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrFormat, at, fmt.Sprintf(format, args...))
}

func (r *Reader) full(b []byte) error {
	n, err := io.ReadFull(r.in, b)
	r.count(b[:n])
	return err
}

// count counts bytes that were read.
func (r *Reader) count(b []byte) {
	r.at += uint64(len(b))
	r.crc = crc32.Update(r.crc, crc32.IEEETable, b)
}

// Channel returns the channel of a message that was read.
func (r *Reader) Channel(id uint16) *Channel { return r.channels[id] }

// Next returns the next record; a chunk is followed by the records that it holds. Records of kinds that are not known are passed over. The error is io.EOF after the end of a
// whole file, io.ErrUnexpectedEOF for one that was cut off, and ErrFormat, with the place.
func (r *Reader) Next() (Record, error) {
	for {
		if r.ended {
			return nil, io.EOF
		}
		if len(r.inside) > 0 {
			if rec, err := r.held(); rec != nil || err != nil {
				return rec, err
			}
			continue
		}
		at, crc := r.at, r.crc
		head := make([]byte, 9)
		if err := r.full(head); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		content, err := r.content(at, binary.LittleEndian.Uint64(head[1:]))
		if err != nil {
			return nil, err
		}
		rec := blank(head[0])
		if rec == nil {
			continue
		}
		if err := parse(rec, content); err != nil {
			return nil, r.bad(at, "%T: %v", rec, err)
		}
		if foot, ok := rec.(*Footer); ok {
			crc = crc32.Update(crc32.Update(crc, crc32.IEEETable, head), crc32.IEEETable, content[:16])
			return rec, r.finish(foot, at, crc)
		}
		return rec, r.check(rec, at, crc)
	}
}

// content reads n bytes, as far as they are there.
func (r *Reader) content(at, n uint64) ([]byte, error) {
	if n > maxRecord {
		return nil, r.bad(at, "record of %d bytes, want at most %d", n, maxRecord)
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r.in, int64(n))
	r.count(b.Bytes())
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// finish checks what comes after the data. crc is of the summary and of the footer before its checksum.
func (r *Reader) finish(f *Footer, at uint64, crc uint32) error {
	if f.SummaryCRC != 0 && f.SummaryCRC != crc {
		return r.bad(at, "checksum of the summary %08x, want %08x", f.SummaryCRC, crc)
	}
	b := make([]byte, len(magic)+1)
	switch n, err := io.ReadFull(r.in, b); {
	case n < len(magic):
		return io.ErrUnexpectedEOF
	case string(b[:len(magic)]) != magic || err == nil:
		return r.bad(r.at, "it ends with %q, want %q", b[:n], magic)
	}
	r.ended = true
	return nil
}

// held returns the next record of the chunk; nil for one of a kind that is not known.
func (r *Reader) held() (Record, error) {
	left := len(r.inside)
	bad := func(format string, args ...any) error {
		return r.bad(r.chunk, "chunk, %d bytes before its end: %s", left, fmt.Sprintf(format, args...))
	}
	if left < 9 {
		return nil, bad("want the code and length of a record")
	}
	op, n := r.inside[0], binary.LittleEndian.Uint64(r.inside[1:])
	if n > uint64(left-9) {
		return nil, bad("record of %d bytes", n)
	}
	content := r.inside[9 : 9+n : 9+n]
	r.inside = r.inside[9+n:]
	rec := blank(op)
	if rec == nil {
		return nil, nil
	}
	switch rec.(type) {
	case *Schema, *Channel, *Message:
	default:
		return nil, bad("%T within a chunk", rec)
	}
	if err := parse(rec, content); err != nil {
		return nil, bad("%T: %v", rec, err)
	}
	return rec, r.check(rec, r.chunk, 0)
}

// check checks a record that was read at a place; crc is of the file before it.
func (r *Reader) check(rec Record, at uint64, crc uint32) error {
	switch x := rec.(type) {
	case *Schema:
		r.schemas[x.ID] = true
	case *Channel:
		if x.SchemaID != 0 && !r.schemas[x.SchemaID] {
			return r.bad(at, "channel %d (%.40q) of schema %d, which is not there", x.ID, x.Topic, x.SchemaID)
		}
		r.channels[x.ID] = x
	case *Message:
		if r.channels[x.ChannelID] == nil {
			return r.bad(at, "message of channel %d, which is not there", x.ChannelID)
		}
	case *Chunk:
		return r.open(x, at)
	case *DataEnd:
		if x.CRC != 0 && x.CRC != crc {
			return r.bad(at, "checksum of the data %08x, want %08x", x.CRC, crc)
		}
		r.crc = 0 // the summary begins
	}
	return nil
}

// open unpacks a chunk.
func (r *Reader) open(c *Chunk, at uint64) error {
	if c.Size > maxRecord {
		return r.bad(at, "chunk of %d bytes, want at most %d", c.Size, maxRecord)
	}
	b := c.Records
	switch c.Compression {
	case "":
	case "zstd":
		var plain bytes.Buffer
		err := r.unpack.Reset(bytes.NewReader(b))
		if err == nil {
			_, err = io.Copy(&plain, io.LimitReader(r.unpack, int64(c.Size)+1))
		}
		if err != nil {
			return r.bad(at, "chunk: %v", err)
		}
		b = plain.Bytes()
	default:
		return r.bad(at, "chunk compressed with %.40q, want zstd or none", c.Compression)
	}
	if uint64(len(b)) != c.Size {
		return r.bad(at, "chunk of %d bytes, want %d", len(b), c.Size)
	}
	if sum := crc32.ChecksumIEEE(b); c.CRC != 0 && sum != c.CRC {
		return r.bad(at, "checksum of the chunk %08x, want %08x", sum, c.CRC)
	}
	r.inside, r.chunk = b, at
	return nil
}
