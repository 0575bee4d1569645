package certs

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Bounds of one delivery.
const (
	MaxDelivery = 100_000  // things
	MaxCSV      = 32 << 20 // bytes
	maxProblems = 100      // lines reported; the rest is counted
)

// NewClaim is one line of a delivery.
type NewClaim struct {
	Line   int
	Thing  thing.ID
	Secret Hash
}

// LineProblem says why one line is wrong, and which values are expected.
type LineProblem struct {
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// Registered is one thing of a delivery that was registered.
type Registered struct {
	Thing  thing.ID
	Secret logging.Secret // empty if its hash was given
}

// DeliveryError says why a delivery was not registered, line by line.
type DeliveryError struct {
	Lines []LineProblem
	More  int // problems beyond those in Lines
}

func (e *DeliveryError) Error() string {
	first := e.Lines[0]
	msg := fmt.Sprintf("nothing registered: line %d: %s", first.Line, first.Problem)
	if n := len(e.Lines) + e.More - 1; n > 0 {
		msg += fmt.Sprintf(" (and %d more)", n)
	}
	return msg
}

// Unwrap makes it Invalid, code "csv_refused".
func (e *DeliveryError) Unwrap() error {
	return errs.Coded(errs.Invalid, "csv_refused", "%s", e.Error())
}

func (e *DeliveryError) add(line int, format string, args ...any) {
	if len(e.Lines) == maxProblems {
		e.More++
		return
	}
	e.Lines = append(e.Lines, LineProblem{line, fmt.Sprintf(format, args...)})
}

// delivery is a parsed file: claims, and secrets made for those that gave no hash.
type delivery struct {
	claims  []NewClaim
	secrets []logging.Secret // beside claims
}

// parseDelivery reads CSV: the thing, optionally the SHA-256 of its claim secret in hex, and further columns, which are left alone. A first line
// whose first field is "thing" names the columns instead: thing and secret_hash count, in any place. Problems are a *DeliveryError.
func parseDelivery(r io.Reader) (delivery, error) {
	limited := &io.LimitedReader{R: r, N: MaxCSV + 1}
	buf := bufio.NewReader(limited)
	if bom, err := buf.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" { // as spreadsheets write it
		_, _ = buf.Discard(3)
	}
	in := csv.NewReader(buf)
	in.FieldsPerRecord, in.ReuseRecord, in.TrimLeadingSpace = -1, true, true
	var d delivery
	bad := &DeliveryError{}
	things, hashes := map[thing.ID]int{}, map[Hash]int{}
	idCol, hashCol := 0, 1
	for first := true; ; first = false {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if pe, ok := errors.AsType[*csv.ParseError](err); ok {
			bad.add(pe.StartLine, "%v: want CSV, fields with quotes or commas in quotes", pe.Err)
			if limited.N <= 0 {
				break
			}
			continue
		}
		if err != nil {
			return delivery{}, errs.Coded(errs.Invalid, "csv_broken_off", "upload ended after %d lines: %w", len(d.claims), err)
		}
		line, _ := in.FieldPos(0)
		if first && column(rec, "thing") >= 0 {
			idCol, hashCol = column(rec, "thing"), column(rec, "secret_hash")
			continue
		}
		if len(d.claims) == MaxDelivery {
			bad.add(line, "want at most %d things in one file", MaxDelivery)
			break
		}
		c, secret, err := parseLine(rec, line, idCol, hashCol)
		if err != nil {
			bad.add(line, "%v", err)
			continue
		}
		if at, twice := things[c.Thing]; twice {
			bad.add(line, "%s is on line %d already", c.Thing, at)
			continue
		}
		if at, twice := hashes[c.Secret]; twice {
			bad.add(line, "the secret hash is on line %d already: want one secret for each thing", at)
			continue
		}
		things[c.Thing], hashes[c.Secret] = line, line
		d.claims, d.secrets = append(d.claims, c), append(d.secrets, secret)
	}
	if limited.N <= 0 {
		bad.add(len(d.claims)+1, "the file is larger than %d bytes", MaxCSV)
	}
	if len(d.claims) == 0 && len(bad.Lines) == 0 {
		bad.add(1, "the file names no thing: want lines of thing[,secret-hash]")
	}
	if len(bad.Lines) > 0 {
		return delivery{}, bad
	}
	return d, nil
}

func column(rec []string, name string) int {
	for i, f := range rec {
		if strings.EqualFold(strings.TrimSpace(f), name) {
			return i
		}
	}
	return -1
}

func parseLine(rec []string, line, idCol, hashCol int) (NewClaim, logging.Secret, error) {
	field := func(i int) string {
		if i < 0 || i >= len(rec) {
			return ""
		}
		return strings.TrimSpace(rec[i])
	}
	id, err := thing.Parse(strings.Clone(field(idCol))) // the record's memory is used again
	if err != nil {
		return NewClaim{}, "", err
	}
	c := NewClaim{Line: line, Thing: id}
	given := field(hashCol)
	if given == "" {
		secret := logging.Secret(rand.Text())
		c.Secret = secret.Sum()
		return c, secret, nil
	}
	if len(given) != 2*len(c.Secret) {
		return NewClaim{}, "", fmt.Errorf("secret hash of %d characters: want the SHA-256 of the claim secret, 64 hex digits", len(given))
	}
	if _, err := hex.Decode(c.Secret[:], []byte(given)); err != nil { // never quoted: it may be the secret itself, in the wrong column
		return NewClaim{}, "", errors.New("secret hash is not hex: want the SHA-256 of the claim secret, 64 hex digits")
	}
	if c.Secret == (Hash{}) {
		return NewClaim{}, "", errors.New("secret hash is all zeros: want the SHA-256 of the claim secret")
	}
	return c, "", nil
}

// RegisterAll registers a delivery of robots from CSV (thing[,secret-hash][,...]; see parseDelivery): all of them, or none and a
// **DeliveryError that says for each line what was expected. The secrets it returns are shown only once. Sending a file again
// changes nothing for things whose hash it gives, and makes new secrets for the others, except for those that have enrolled.
// Only one delivery runs at a time; a second one gets Exhausted.
func (s *Service) RegisterAll(ctx context.Context, r io.Reader) ([]Registered, error) {
	select {
	case s.bulk <- struct{}{}:
		defer func() { <-s.bulk }()
	default:
		return nil, &errs.Error{Kind: errs.Exhausted, Code: "delivery_running", Msg: "another list is being registered; try again later", Retry: 10 * time.Second}
	}
	d, err := parseDelivery(r)
	if err != nil {
		return nil, err
	}
	at := s.now()
	problems, err := s.store.SetClaims(ctx, d.claims, at, maxProblems+1)
	if err != nil {
		return nil, fmt.Errorf("register %d things: %w", len(d.claims), err)
	}
	if len(problems) > 0 {
		bad := &DeliveryError{}
		for _, p := range problems {
			bad.add(p.Line, "%s", p.Problem)
		}
		return nil, bad
	}
	out, steps := make([]Registered, len(d.claims)), make([]Step, len(d.claims))
	for i, c := range d.claims {
		out[i] = Registered{c.Thing, d.secrets[i]}
		reason := "claim secret made"
		if d.secrets[i] == "" {
			reason = "hash of a claim secret given"
		}
		steps[i] = Step{Thing: c.Thing, Step: StepRegister, OK: true, Reason: reason + ", with a delivery", At: at}
	}
	s.recordAll(context.WithoutCancel(ctx), steps) // they are registered, whether the peer still listens or not
	return out, nil
}

func (s *Service) recordAll(ctx context.Context, steps []Step) {
	if all, ok := s.recorder.(BatchRecorder); ok {
		all.RecordAll(ctx, steps)
		return
	}
	for _, st := range steps {
		s.recorder.Record(ctx, st)
	}
}
