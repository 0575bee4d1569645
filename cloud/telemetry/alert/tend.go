package alert

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/errs"
)

// Bounds of what people say about alerts.
const (
	MaxWhy     = 500 // bytes
	MaxSilence = 30 * 24 * time.Hour
)

// Ack is that a person takes care of an alert. It ends when the alert is resolved or becomes more severe.
type Ack struct {
	At  time.Time `json:"at"`
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
}

// Silence keeps alerts about one problem of one release, or about one part of a process, from posting letters for a time.
type Silence struct {
	ID      int64     `json:"id"`
	Release string    `json:"release,omitempty"`
	Place   string    `json:"place,omitempty"` // of a part of the cloud
	Kind    string    `json:"kind"`            // PartKind: a part, failing or not
	Code    string    `json:"code,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
	Why     string    `json:"why"`
}

// PartKind is the kind of a silence about a part of the cloud.
const PartKind = "part"

// Note is a person's word on an acknowledgement.
type Note struct {
	Why string `json:"why,omitempty"` // for others
}

// Hush asks for a silence.
type Hush struct {
	Alert   int64  `json:"alert"`   // it and those about the same
	Minutes int    `json:"minutes"` // from now
	Why     string `json:"why"`
}

// Words says in the audit log what a silence is.
func (h Hush) Words() string {
	return fmt.Sprintf("alert %d, for %s: %s", h.Alert, time.Duration(h.Minutes)*time.Minute, h.Why)
}

// Check reports why it cannot be.
func (h Hush) Check() error {
	if h.Minutes < 1 || h.Minutes > int(MaxSilence/time.Minute) {
		return errs.New(errs.Invalid, "minutes %d: want 1 to %d", h.Minutes, int(MaxSilence/time.Minute))
	}
	if strings.TrimSpace(h.Why) == "" {
		return errs.New(errs.Invalid, "why: want a reason")
	}
	return Note{h.Why}.Check()
}

// Check reports why it cannot be.
func (n Note) Check() error {
	if len(n.Why) > MaxWhy || !utf8.ValidString(n.Why) || strings.ContainsRune(n.Why, 0) {
		return errs.New(errs.Invalid, "why: want at most %d bytes of text", MaxWhy)
	}
	return nil
}

// Desk is the storage of what people do about alerts.
type Desk interface {
	// Ack acknowledges an alert that fires; NotFound. Unack takes that back.
	Ack(ctx context.Context, id int64, a Ack) error
	Unack(ctx context.Context, id int64) error
	// Silence silences an alert and others about the same; NotFound.
	Silence(ctx context.Context, h Hush, by string) (Silence, error)
	// Silences returns those that have not ended, the one that ends first at first. Unsilence ends one; NotFound.
	Silences(ctx context.Context) ([]Silence, error)
	Unsilence(ctx context.Context, id int64) error
}

// Ack acknowledges an alert that fires; Invalid, NotFound.
func (s *Service) Ack(ctx context.Context, id int64, n Note, by string) error {
	if err := n.Check(); err != nil {
		return err
	}
	return s.Desk.Ack(ctx, id, Ack{By: by, Why: n.Why})
}

// Unack takes an acknowledgement back; NotFound.
func (s *Service) Unack(ctx context.Context, id int64) error { return s.Desk.Unack(ctx, id) }

// Silence silences an alert and others about the same; Invalid, NotFound.
func (s *Service) Silence(ctx context.Context, h Hush, by string) (Silence, error) {
	if err := h.Check(); err != nil {
		return Silence{}, err
	}
	return s.Desk.Silence(ctx, h, by)
}

// Silences returns those in force.
func (s *Service) Silences(ctx context.Context) ([]Silence, error) { return s.Desk.Silences(ctx) }

// Unsilence ends a silence; NotFound.
func (s *Service) Unsilence(ctx context.Context, id int64) error { return s.Desk.Unsilence(ctx, id) }
