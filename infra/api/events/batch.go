package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"kennel/infra/api/envelope"
)

// Limits of one batch.
const (
	MaxWire     = envelope.MaxWire // bytes on the wire
	MaxInflated = 4 << 20          // bytes of NDJSON
	MaxEvents   = 5000
)

// Header is the first line of a batch.
type Header struct {
	V       int    `json:"v"`
	Batch   string `json:"batch"` // 1 to 64 characters; the acknowledgement names it
	RobotID string `json:"robot_id"`
	BootID  string `json:"boot_id"`
	First   uint64 `json:"first"` // seq of the first event
	Last    uint64 `json:"last"`  // seq of the last event
	Count   int    `json:"count"`
}

// Batch is a decoded batch.
type Batch struct {
	Header
	Events []Event
	Size   int // bytes of the inflated events, at most MaxInflated
}

// BatchError says why a batch is refused. An acknowledgement of status refused carries it.
type BatchError struct {
	Code   string   // too_large, header, encoding, count or events
	Reason string   // for people: what was wrong, on which line, what was expected
	Bad    []uint64 // events: those that spoil the batch; empty: all of it
}

func (e *BatchError) Error() string { return "batch refused (" + e.Code + "): " + e.Reason }

// ErrTooLarge: a batch does not fit the wire. Send fewer events at a time.
var ErrTooLarge = errors.New("batch is larger than the limit of a broker message")

// EncodeBatch makes a batch of events of one robot and boot, in ascending order of seq.
func EncodeBatch(id string, evs []Event) ([]byte, error) {
	if len(evs) == 0 {
		return nil, errors.New("batch without events")
	}
	var lines []byte
	for i := range evs {
		lines = append(AppendLine(lines, &evs[i]), '\n')
	}
	first, last := &evs[0], &evs[len(evs)-1]
	return EncodeLines(Header{Batch: id, RobotID: first.RobotID, BootID: first.BootID, First: first.Seq, Last: last.Seq, Count: len(evs)}, lines)
}

// EncodeLines makes a batch of events that are NDJSON already. The header must describe them. ErrTooLarge when it exceeds MaxWire.
func EncodeLines(h Header, lines []byte) ([]byte, error) {
	h.V = 1
	if len(lines) > MaxInflated || h.Count > MaxEvents {
		return nil, fmt.Errorf("%d events, %d bytes of JSON: %w (%d, %d)", h.Count, len(lines), ErrTooLarge, MaxEvents, MaxInflated)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode batch header: %w", err)
	}
	var out bytes.Buffer
	out.Write(head)
	out.WriteByte('\n')
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&out)
	if _, err := z.Write(lines); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	if out.Len() > MaxWire {
		return nil, fmt.Errorf("%d events, %d bytes compressed: %w (%d)", h.Count, out.Len(), ErrTooLarge, MaxWire)
	}
	return out.Bytes(), nil
}

var (
	zippers   = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// DecodeHeader reads a batch's header alone, for a refusal that need not inflate it.
func DecodeHeader(msg []byte) (Header, error) {
	h, _, err := split(msg)
	return h, err
}

// DecodeBatch reads and checks a batch. Its error is a *BatchError; the header is filled in as far as it was readable, so that a refusal
// can name the batch. The events share one string, the inflated batch.
func DecodeBatch(msg []byte) (Batch, error) {
	h, body, err := split(msg)
	b := Batch{Header: h}
	if err != nil {
		return b, err
	}
	text, err := inflate(body)
	if err != nil {
		return b, err
	}
	b.Size = len(text)
	b.Events, err = parseLines(h, text)
	return b, err
}

func split(msg []byte) (Header, []byte, error) {
	var h Header
	refuse := func(code, format string, args ...any) (Header, []byte, error) {
		return h, nil, &BatchError{Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	body, err := envelope.Split(msg, &h)
	if err != nil {
		return refuse("header", "%v", err)
	}
	switch {
	case len(msg) > MaxWire:
		return refuse("too_large", "%d bytes: want at most %d", len(msg), MaxWire)
	case h.V != 1:
		return refuse("header", "batch version %d: want 1", h.V)
	case !isWord(h.Batch, MaxWord, lower|upper|digit|dash):
		return refuse("header", "batch id %.80q: want 1 to %d letters, digits, - and _", h.Batch, MaxWord)
	case !isWord(h.RobotID, MaxWord, lower|digit|dash):
		return refuse("header", "robot_id %.80q: want a serial of 0-9 a-z -", h.RobotID)
	case h.Count < 1 || h.Count > MaxEvents:
		return refuse("header", "count %d: want 1 to %d", h.Count, MaxEvents)
	case h.First > h.Last || h.Last > MaxSeq || h.Last-h.First < uint64(h.Count-1):
		return refuse("header", "count %d does not match seq %d to %d", h.Count, h.First, h.Last)
	}
	if err := CheckBootID(h.BootID); err != nil {
		return refuse("header", "%v", err)
	}
	return h, body, nil
}

func inflate(body []byte) (string, error) {
	z := unzippers.Get().(*gzip.Reader)
	defer unzippers.Put(z)
	if err := z.Reset(bytes.NewReader(body)); err != nil {
		return "", &BatchError{Code: "encoding", Reason: fmt.Sprintf("body is not gzip: %v", err)}
	}
	var text strings.Builder
	text.Grow(min(8*len(body), MaxInflated)) // a guess from what was really sent, not from a size field
	n, err := io.Copy(&text, io.LimitReader(z, MaxInflated+1))
	switch {
	case n > MaxInflated:
		return "", &BatchError{Code: "too_large", Reason: fmt.Sprintf("body decompresses to more than %d bytes", MaxInflated)}
	case err != nil:
		return "", &BatchError{Code: "encoding", Reason: fmt.Sprintf("gzip at byte %d of the decompressed body: %v", n, err)}
	}
	return text.String(), nil
}

func parseLines(h Header, text string) ([]Event, error) {
	bad := badLines{}
	out := make([]Event, 0, min(h.Count, len(text)/32+1)) // no event is shorter than 32 bytes
	line := 0
	next := h.First // lowest seq that is in order
	for text != "" {
		var s string
		s, text, _ = strings.Cut(text, "\n")
		if line++; line > h.Count {
			return nil, &BatchError{Code: "count", Reason: fmt.Sprintf("more lines than the %d of the header", h.Count)}
		}
		e, err := ParseLine(s)
		if err != nil {
			bad.unnamed(line, err)
			continue
		}
		if err = e.Validate(); err == nil {
			switch {
			case e.RobotID != h.RobotID || e.BootID != h.BootID:
				err = fmt.Errorf("robot_id %.80q, boot_id %.80q: the header says %q, %q", e.RobotID, e.BootID, h.RobotID, h.BootID)
			case e.Seq < next || e.Seq > h.Last:
				err = fmt.Errorf("seq out of order: want %d to %d", next, h.Last)
			}
		}
		if err != nil {
			bad.named(line, e.Seq, err)
			continue
		}
		next = e.Seq + 1
		out = append(out, e)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	if line != h.Count || out[0].Seq != h.First || out[line-1].Seq != h.Last {
		return nil, &BatchError{Code: "count", Reason: fmt.Sprintf("%d lines, but the header says %d events, seq %d to %d", line, h.Count, h.First, h.Last)}
	}
	return out, nil
}

// badLines collects what is wrong with a batch, a few words for each of the first lines, all seqs.
type badLines struct {
	seqs     []uint64
	told     []string
	more     int
	nameless bool
}

func (b *badLines) tell(s string) {
	if len(b.told) == 3 {
		b.more++
		return
	}
	b.told = append(b.told, s)
}

func (b *badLines) named(line int, seq uint64, err error) {
	b.seqs = append(b.seqs, seq)
	b.tell(fmt.Sprintf("line %d (seq %d): %v", line, seq, err))
}

// unnamed notes a line whose seq cannot be told, which spoils the whole batch.
func (b *badLines) unnamed(line int, err error) {
	b.nameless = true
	b.tell(fmt.Sprintf("line %d: not an event: %v", line, err))
}

func (b *badLines) err() error {
	if len(b.told) == 0 {
		return nil
	}
	reason := strings.Join(b.told, "; ")
	if b.more > 0 {
		reason += fmt.Sprintf("; and %d more lines", b.more)
	}
	if b.nameless {
		b.seqs = nil
	}
	return &BatchError{Code: "events", Reason: reason, Bad: b.seqs}
}
