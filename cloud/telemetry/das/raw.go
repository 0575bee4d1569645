package das

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"kennel/infra/thing"
)

// maxRaw bounds a payload in a raw object, in bytes. It exceeds what the wire carries.
const maxRaw = 1 << 20

// RawKey returns the key of a new raw object of a time: its day and hour, and random letters (package archive).
func RawKey(at time.Time) string { return at.UTC().Format("das/2006-01-02/15/") + rand.Text() }

// RawBatch is one batch as it came, inside a raw object.
type RawBatch struct {
	Thing    thing.ID
	Received time.Time
	Payload  []byte
}

type rawHeader struct {
	Thing    thing.ID  `json:"thing"`
	Received time.Time `json:"received"`
	Bytes    int       `json:"bytes"`
}

// AppendRaw appends b to a raw object: a line of JSON that says whose and how long, the payload, a newline.
func AppendRaw(dst []byte, b RawBatch) []byte {
	head, err := json.Marshal(rawHeader{b.Thing, b.Received.UTC(), len(b.Payload)})
	if err != nil {
		panic(err) // of plain fields; only a year beyond 9999 could fail, and the time is our own
	}
	dst = append(append(dst, head...), '\n')
	return append(append(dst, b.Payload...), '\n')
}

// ReadRaw calls fn for each batch of a raw object. The payload is fn's to keep.
func ReadRaw(r io.Reader, fn func(RawBatch) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("raw batch %d: header: %w", n, err)
		}
		var h rawHeader
		if err := json.Unmarshal(line, &h); err != nil {
			return fmt.Errorf("raw batch %d: header: %w", n, err)
		}
		if h.Bytes < 0 || h.Bytes > maxRaw {
			return fmt.Errorf("raw batch %d: payload of %d bytes: want 0 to %d", n, h.Bytes, maxRaw)
		}
		b := make([]byte, h.Bytes+1)
		if _, err := io.ReadFull(br, b); err != nil {
			return fmt.Errorf("raw batch %d: payload: %w", n, err)
		}
		if b[h.Bytes] != '\n' {
			return fmt.Errorf("raw batch %d: no newline after %d bytes: %.20q", n, h.Bytes, bytes.TrimSpace(b))
		}
		if err := fn(RawBatch{h.Thing, h.Received, b[:h.Bytes:h.Bytes]}); err != nil {
			return err
		}
	}
}

// WithoutRaw returns a raw object without the batches of a stretch, and how many there were. Of an object that is damaged, what comes before the
// damage is kept.
func WithoutRaw(body []byte, s thing.Stretch) (rest []byte, dropped int, err error) {
	rest = make([]byte, 0, len(body))
	err = ReadRaw(bytes.NewReader(body), func(b RawBatch) error {
		if s.Holds(b.Thing, b.Received) {
			dropped++
			return nil
		}
		rest = AppendRaw(rest, b)
		return nil
	})
	return rest, dropped, err
}

// EachRaw calls fn for each batch of a raw object of a stretch.
func EachRaw(body []byte, s thing.Stretch, fn func(RawBatch) error) error {
	return ReadRaw(bytes.NewReader(body), func(b RawBatch) error {
		if !s.Holds(b.Thing, b.Received) {
			return nil
		}
		return fn(b)
	})
}
