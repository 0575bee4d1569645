package intake

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Events stores batches of events; *das.Ingester is one.
type Events interface {
	HandleFrom(ctx context.Context, id thing.ID, origin string, begun time.Time, payload []byte, answer func(ack.Ack))
}

// maxEvents bounds the events of one message: the original begins a new file at a megabyte (part of VEC-DAS-05).
const maxEvents = 20_000

// messageTime is how long a message may wait to be stored.
const messageTime = 30 * time.Second

// contents undoes the encodings of a message. Old robots do not compress.
func (m message) contents() ([]byte, error) {
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, errs.Coded(errs.Invalid, codeContents, format, args...)
	}
	if v := m.attribute("DAS-Transport-Version"); v != "" && v != "2" {
		return bad("DAS-Transport-Version %.20q: want 2", v)
	}
	if t := m.attribute("Content-Type"); t != "" && !strings.HasPrefix(t, "application/vnd.anki.json;") && !strings.HasPrefix(t, "application/vnd.anki+json;") {
		return bad("Content-Type %.60q: want application/vnd.anki.json", t)
	}
	encoding := cmp.Or(m.attribute("Content-Encoding"), "gzip, base64")
	if encoding != "gzip, base64" && encoding != "base64" {
		return bad("Content-Encoding %.40q: want gzip, base64", encoding)
	}
	b, err := base64.StdEncoding.DecodeString(m.body)
	if err != nil {
		return bad("MessageBody is not base64: %v", err)
	}
	if encoding == "base64" {
		return b, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return bad("MessageBody is not gzip: %v", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, events.MaxInflated+1))
	switch {
	case len(text) > events.MaxInflated:
		return bad("MessageBody decompresses to more than %d bytes", events.MaxInflated)
	case err != nil:
		return bad("gzip at byte %d of the decompressed text: %v", len(text), err)
	}
	return text, nil
}

// batch is the events of one message.
type batch struct {
	esn    string
	events []events.Event
	bad    []string // why events were refused, the first few
	more   int      // how many beyond those
}

func (b *batch) refuse(n int, err error) {
	if len(b.bad) == 5 {
		b.more++
		return
	}
	b.bad = append(b.bad, fmt.Sprintf("event %d: %v", n, err))
}

// refused counts the events that cannot be stored.
func (b *batch) refused() int { return len(b.bad) + b.more }

// parseEvents reads a JSON array of events. Those that are wrong are refused, each with its reason, and the others are kept. The original does not escape
// what it writes, so that one text with a quote spoils its whole array: such an array is taken apart where its events begin.
func parseEvents(text []byte) (batch, error) {
	var b batch
	notArray := errs.Coded(errs.Invalid, codeContents, "the content is not a JSON array of events")
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '[' {
		return b, notArray
	}
	lines, err := elements(text)
	if err != nil && text[len(text)-1] == ']' {
		lines, err = salvage(string(text))
	}
	if err != nil {
		return b, errs.Coded(errs.Invalid, codeContents, "the content is not a JSON array of events: %v", err)
	}
	for i, line := range lines {
		e, err := events.ParseLine(line)
		e.BootID, e.RobotID = strings.TrimSpace(e.BootID), strings.TrimSpace(e.RobotID)
		e.Fit()
		if err == nil {
			err = e.Validate()
		}
		b.esn = cmp.Or(b.esn, e.RobotID)
		if err == nil && e.RobotID != b.esn {
			err = fmt.Errorf("robot_id %.40q: the first event has %q", e.RobotID, b.esn)
		}
		if err != nil {
			b.refuse(i+1, err)
			continue
		}
		b.events = append(b.events, e)
	}
	slices.SortStableFunc(b.events, func(x, y events.Event) int { return cmp.Or(cmp.Compare(x.BootID, y.BootID), cmp.Compare(x.Seq, y.Seq)) })
	b.events = slices.CompactFunc(b.events, func(x, y events.Event) bool { return x.BootID == y.BootID && x.Seq == y.Seq })
	if len(b.events) == 0 {
		return b, errs.Coded(errs.Invalid, codeContents, "no event is valid: %s", cmp.Or(strings.Join(b.bad, "; "), "the array is empty"))
	}
	return b, nil
}

var errTooMany = fmt.Errorf("more than %d events", maxEvents)

// elements returns the elements of a JSON array as they are written.
func elements(text []byte) (out []string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		if out = append(out, string(raw)); len(out) > maxEvents {
			return nil, errTooMany
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the array")
	}
	return out, nil
}

// begin is how the original begins each event.
const begin = `{"source":"`

// salvage takes a broken array apart where events begin.
func salvage(text string) ([]string, error) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' ' // not allowed within texts, and nothing between them
		}
		return r
	}, text[1:len(text)-1])
	if !strings.HasPrefix(text, begin) {
		return nil, errors.New("its first event does not start like an event of a robot")
	}
	if strings.Count(text, ","+begin) >= maxEvents {
		return nil, errTooMany
	}
	out := strings.Split(text[len(begin):], ","+begin)
	for i := range out {
		out[i] = begin + out[i]
	}
	return out, nil
}

// store hands the events to the ingester, boot by boot, and waits until all are stored or refused.
func (s *Service) store(ctx context.Context, id thing.ID, origin string, begun time.Time, b *batch, name string) error {
	ctx, cancel := context.WithTimeout(ctx, messageTime)
	defer cancel()
	stored := 0
	for evs := range chunks(b.events) {
		for len(evs) > 0 {
			n, a, err := s.hand(ctx, id, origin, begun, fmt.Sprintf("%s-%d", name, stored), evs)
			switch {
			case err != nil:
				return err
			case a.Status == ack.RetryAfter && a.Code != "": // for a reason of the robot's own
				return &errs.Error{Kind: errs.Exhausted, Code: a.Code, Msg: a.Reason, Retry: time.Duration(a.After)}
			case a.Status == ack.RetryAfter:
				return errs.RetryLater(time.Duration(a.After), "events cannot be stored at the moment", nil)
			case a.Code == consent.CodeOptedOut, a.Code == consent.CodeOwnerChanged:
				return errs.Coded(errs.Denied, a.Code, "%s", a.Reason)
			case a.Status == ack.Refused:
				b.refuse(n, errors.New(a.Reason))
				b.more += n - 1
			default:
				stored += n
			}
			evs = evs[n:]
		}
	}
	if stored == 0 {
		return errs.Coded(errs.Invalid, codeContents, "no event is valid: %s", strings.Join(b.bad, "; "))
	}
	return nil
}

// chunks yields events of one boot at a time, at most events.MaxEvents.
func chunks(evs []events.Event) func(func([]events.Event) bool) {
	return func(yield func([]events.Event) bool) {
		for len(evs) > 0 {
			n := 1
			for n < len(evs) && n < events.MaxEvents && evs[n].BootID == evs[0].BootID {
				n++
			}
			if !yield(evs[:n]) {
				return
			}
			evs = evs[n:]
		}
	}
}

// hand gives as many of evs to the ingester as fit one batch, and waits for the answer.
func (s *Service) hand(ctx context.Context, id thing.ID, origin string, begun time.Time, name string, evs []events.Event) (n int, a ack.Ack, err error) {
	var payload []byte
	for n = len(evs); ; n = (n + 1) / 2 {
		if payload, err = events.EncodeBatch(name, evs[:n]); !errors.Is(err, events.ErrTooLarge) || n == 1 {
			break
		}
	}
	if err != nil {
		return n, ack.Ack{Status: ack.Refused, Reason: err.Error()}, nil
	}
	answers := make(chan ack.Ack, 1) // the ingester does not wait for who asked
	s.Events.HandleFrom(ctx, id, origin, begun, payload, func(a ack.Ack) { answers <- a })
	select {
	case a = <-answers:
		return n, a, nil
	case <-ctx.Done():
		return n, a, errs.RetryLater(10*time.Second, "events are not stored yet", ctx.Err())
	}
}

// SendMessage serves the form of the queue service, to which the original sends its events (VEC-DAS-06). Of a message with some good events the others are
// refused in the log alone: the original keeps what is not answered with 200, and sends nothing after it.
func (s *Service) SendMessage(who Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, m, err := s.send(w, r, who)
		if err != nil {
			s.refuse(w, r, id, err, refuseXML)
			return
		}
		m.answer(w)
	})
}

func (s *Service) send(w http.ResponseWriter, r *http.Request, who Caller) (id thing.ID, m message, err error) {
	ctx, begun := r.Context(), time.Now()
	leave, err := who.Enter(r)
	if err != nil {
		return "", m, err
	}
	defer leave()
	err = s.slot(func() error {
		form, err := s.read(w, r, maxForm)
		if err != nil {
			return err
		}
		if m, err = parseSend(string(form)); err != nil {
			return err
		}
		text, err := m.contents()
		if err != nil {
			return err
		}
		b, err := parseEvents(text)
		if err != nil {
			return err
		}
		var origin string
		if id, origin, err = who.Signed(ctx, r, form, b.esn); err != nil {
			return err
		}
		if err := s.admit(ctx, id); err != nil {
			return err
		}
		sum := md5.Sum([]byte(m.body))
		err = s.store(ctx, id, origin, begun, &b, "sqs-"+hex.EncodeToString(sum[:8]))
		if n := b.refused(); n > 0 {
			s.Config.Log.LogAttrs(ctx, slog.LevelWarn, "events of an original robot refused", slog.Any(logging.Thing, id), slog.Int("events", n), slog.String("reason", strings.Join(b.bad, "; ")))
		}
		return err
	})
	return id, m, err
}
