package das

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRawRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC)
	want := []RawBatch{{"vic:1", now, []byte("{}\nxyz")}, {"pleo:2", now, []byte{}}}
	var b []byte
	for _, r := range want {
		b = AppendRaw(b, r)
	}
	var got []RawBatch
	if err := readRaw(bytes.NewReader(b), func(r RawBatch) error { got = append(got, r); return nil }); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for n := range b {
		if err := readRaw(bytes.NewReader(b[:n]), func(RawBatch) error { return nil }); err == nil && n != 0 && !strings.HasSuffix(string(b[:n]), "xyz\n") {
			t.Errorf("cut at %d of %d: no error", n, len(b))
		}
	}
}

// readRaw calls fn for each batch of a raw object. The payload is fn's to keep.
func readRaw(r io.Reader, fn func(RawBatch) error) error {
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
