// Package hawkbit lets devices that update themselves with SWUpdate, or with another client of hawkBit's Direct Device Integration API, take the same releases by
// the same rollouts as robots with our agent (infra/adr/0030).
//
// A device polls. What the release service wants of it becomes an action with a number, and what the device says of the action becomes the reports that our
// agent sends; so nothing else in the cloud knows of such devices.
//
//	          ┌─────────────────────── the wish is over ──────────┐
//	none ─► offered ─► fetched ─► working ─► installed ─► done    │
//	                      └──────────┴────────────┴─────► failed  │
//	                      └──────────┴────────────┴─► cancel ─► cancelled
//	                                                     └─► kept: it cannot stop, and ends as others do
//
// An action that ended is not offered again; a cancelled one is, under another number, if it is wanted again.
package hawkbit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/updates/artifact"
	"kennel/infra/api/envelope"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
)

// State is how far an action is.
type State string

// The states.
const (
	None      State = ""
	Offered   State = "offered"
	Fetched   State = "fetched" // the device knows what it is about
	Working   State = "working"
	Installed State = "installed" // it waits for its restart
	Cancel    State = "cancel"    // it is told to stop
	Kept      State = "kept"      // it said that it cannot
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// busy reports whether the device may be at work.
func (s State) busy() bool { return s == Fetched || s == Working || s == Installed }

// Open reports whether the device may see what the action is about.
func (s State) Open() bool { return s == Offered || s.busy() || s == Kept }

// Device holds what is kept of one.
type Device struct {
	Thing      thing.ID
	Rev        int64
	Token      []byte // SHA-256; nil: none
	Action     int32
	Release    ota.Version
	Since      time.Time
	State      State
	Terms      Terms
	Said       string // errors that came before the end of the action
	Running    string
	Attributes map[string]string
	Told       bool // Attributes came since its last action ended
}

// Terms are those of a wish that a device hears of, or that hold for its download.
type Terms struct {
	Waits  bool  `json:"waits,omitempty"`  // something must hold on the device, which decides when it begins
	Window bool  `json:"window,omitempty"` // it was offered within its maintenance window
	Rate   int64 `json:"rate,omitempty"`   // bytes a second at most; 0: no limit
}

// Store is the storage that Service needs.
type Store interface {
	// Device returns what is kept of a device; of an unknown one, its name.
	Device(ctx context.Context, id thing.ID) (Device, error)
	// Save keeps all of d but its token if its revision is still d.Rev, and reports whether it was.
	Save(ctx context.Context, d Device) (bool, error)
	// SetToken keeps a token; nil: none.
	SetToken(ctx context.Context, id thing.ID, token []byte) error
}

// Config holds what a Service is made of.
type Config struct {
	Store   Store
	Wish    func(ctx context.Context, id thing.ID, running string) (ota.Desired, error)                      // ota.Service: Ask
	Report  func(ctx context.Context, id thing.ID, s ota.Status) error                                       // and Report
	Archive func(ctx context.Context, species thing.Species, v ota.Version) (artifact.Artifact, bool, error) // the file of a release; false: it has none
	Seen    func(ctx context.Context, id thing.ID, m status.Message) error                                   // of registry.Service: Apply
	Tag     func(ctx context.Context, id thing.ID, add, remove []string) ([]string, error)                   // and Tag
	Every   time.Duration                                                                                    // how often idle devices ask
	Log     *slog.Logger
}

// Service holds the rules. Safe for concurrent use, also by several processes.
type Service struct{ Config }

// New returns a service.
func New(c Config) *Service { return &Service{c} }

// DefaultPoll is how often idle devices ask. A lease lasts at most registry.MaxLease, so that a device may miss one turn.
const DefaultPoll = 2 * time.Minute

// AuditToken names the line of the audit log about a token; its object is the device.
const AuditToken = "thing.device_token"

// NewToken makes the token with which a device shows who it is, in place of an earlier one. Only its hash is kept.
func (s *Service) NewToken(ctx context.Context, id thing.ID) (logging.Secret, error) {
	token := rand.Text()
	sum := sha256.Sum256([]byte(token))
	return logging.Secret(token), s.Store.SetToken(ctx, id, sum[:])
}

// Check reports whether a token is the device's.
func (s *Service) Check(ctx context.Context, id thing.ID, token logging.Secret) (bool, error) {
	d, err := s.Store.Device(ctx, id)
	sum := sha256.Sum256([]byte(token.Reveal()))
	return err == nil && subtle.ConstantTimeCompare(sum[:], d.Token) == 1, err
}

// saveAttempts bounds the races for one device: it makes one or two requests at once.
const saveAttempts = 4

// change brings what fn makes of a device into the store, and reports what fn returns first: a report that is repeated changes nothing. agent is the name
// of the client.
func (s *Service) change(ctx context.Context, id thing.ID, agent string, fn func(d *Device) (*ota.Status, error)) (Device, error) {
	for range saveAttempts {
		d, err := s.Store.Device(ctx, id)
		if err != nil {
			return d, err
		}
		before := d
		report, err := fn(&d)
		if err != nil {
			return d, err
		}
		if report != nil {
			report.V, report.Release, report.Since, report.Running, report.TS = 1, before.Release, before.Since, d.Running, time.Now().UnixMilli()
			if report.Phase == ota.Installed {
				report.Next = before.Release
			}
			if err := s.Report(ctx, id, *report); err != nil {
				return d, err
			}
		}
		same := before.Action == d.Action && before.State == d.State && before.Said == d.Said && before.Running == d.Running && before.Told == d.Told && maps.Equal(before.Attributes, d.Attributes)
		if !same {
			if saved, err := s.Store.Save(ctx, d); err != nil || !saved {
				if err != nil {
					return d, err
				}
				continue
			}
		}
		return d, s.seen(ctx, d, agent)
	}
	return Device{}, errs.RetryLater(time.Second, "the device makes too many requests at once", nil)
}

// seen tells the fleet that a device is there, in the form in which robots with our agent say so themselves.
func (s *Service) seen(ctx context.Context, d Device, agent string) error {
	m := status.Message{V: 1, State: status.Online, BootID: registry.UpdaterBoot, ConnectSeq: 1, Seq: uint64(time.Now().UnixMilli()), Lease: envelope.Millis(min(2*s.Every+time.Minute, registry.MaxLease)),
		Agent: registry.Clip(agent, 64), OS: registry.Clip(d.Running, 64)}
	if hardware := d.Attributes["hardware"]; hardware != "" {
		m.Body = &status.Body{Model: registry.Clip(hardware, 64)}
	}
	return s.Seen(ctx, d.Thing, m)
}

// Answer is the answer to a poll.
type Answer struct {
	Device
	Sleep time.Duration // until the next one
}

// busyPoll is how often devices with an open action ask: that is how soon they hear that it is cancelled.
const busyPoll = 15 * time.Second

// Poll answers a poll: what the release service wants of the device may have changed, and the device may be granted its turn.
func (s *Service) Poll(ctx context.Context, id thing.ID, agent string) (Answer, error) {
	d, err := s.Store.Device(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	want, err := s.Wish(ctx, id, d.Running)
	if err != nil {
		return Answer{}, err
	}
	has := false
	if want.Release != "" && string(want.Release) != d.Running {
		if _, has, err = s.Archive(ctx, id.Species(), want.Release); err != nil {
			return Answer{}, err
		}
		if !has && want.Release != d.Release { // said once: the report has one name
			err = s.Report(ctx, id, ota.Status{V: 1, ID: name("none", string(want.Release), want.Since.UTC().Format(time.RFC3339)), Release: want.Release, Since: want.Since, Running: d.Running,
				Phase: ota.Pending, Reason: "the release has no file for SWUpdate", TS: time.Now().UnixMilli()})
			if err != nil {
				return Answer{}, err
			}
		}
	}
	if d, err = s.change(ctx, id, agent, func(d *Device) (*ota.Status, error) { d.follow(want, has); return nil, nil }); err != nil {
		return Answer{}, err
	}
	a := Answer{d, s.Every}
	if d.State.Open() || d.State == Cancel {
		a.Sleep = min(busyPoll, s.Every)
	}
	return a, nil
}

// follow brings a wish into the device's action. has says whether there is a file for it.
func (d *Device) follow(want ota.Desired, has bool) {
	since := want.Since.UTC().Truncate(time.Microsecond) // as it comes from storage
	same := d.Release == want.Release && d.Since.Equal(since)
	wanted := want.Release != "" && string(want.Release) != d.Running && has && want.NotBefore.IsZero()
	switch {
	case d.State.busy() && !same:
		d.State = Cancel
	case d.State.busy() || d.State == Cancel || d.State == Kept:
	case wanted && (!same || d.State == Cancelled || d.State == None):
		d.Action, d.Release, d.Since, d.State = d.Action%(1<<30)+1, want.Release, since, Offered
		d.Said, d.Terms = "", Terms{want.Needs != nil, want.Window != nil, want.Rate}
	case !wanted && d.State == Offered:
		d.State = None
	}
}

// gone is the answer about an action that is not the device's, or has ended.
func gone(action int32) error {
	return errs.Coded(errs.NotFound, "action_gone", "action %d is not a current action of this device", action)
}

// Fetch returns what an open action is about.
func (s *Service) Fetch(ctx context.Context, id thing.ID, action int32, agent string) (Device, artifact.Artifact, error) {
	d, err := s.change(ctx, id, agent, func(d *Device) (*ota.Status, error) {
		if d.Action != action || !d.State.Open() {
			return nil, gone(action)
		}
		if d.State == Offered {
			d.State = Fetched
		}
		return nil, nil
	})
	if err != nil {
		return d, artifact.Artifact{}, err
	}
	return s.File(ctx, id, d.Release)
}

// Cancelling returns an error unless the device is told to stop that action.
func (s *Service) Cancelling(ctx context.Context, id thing.ID, action int32) error {
	d, err := s.Store.Device(ctx, id)
	if err == nil && (d.Action != action || d.State != Cancel) {
		err = gone(action)
	}
	return err
}

// File returns the file of a release that the device's open action is about.
func (s *Service) File(ctx context.Context, id thing.ID, v ota.Version) (Device, artifact.Artifact, error) {
	d, err := s.Store.Device(ctx, id)
	if err != nil {
		return d, artifact.Artifact{}, err
	}
	if d.Release == v && d.State.Open() {
		if a, ok, err := s.Archive(ctx, id.Species(), v); ok || err != nil {
			return d, a, err
		}
	}
	return d, artifact.Artifact{}, errs.Coded(errs.NotFound, "no_file", "release %.40q is not assigned to this device", v)
}

// name makes the id of a report.
func name(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Feedback takes what a device says of its action. What is said again changes nothing.
func (s *Service) Feedback(ctx context.Context, id thing.ID, action int32, f Feedback, agent string) error {
	_, err := s.change(ctx, id, agent, func(d *Device) (*ota.Status, error) {
		if d.Action != action || d.State == None || d.State == Offered {
			return nil, gone(action)
		}
		next, phase := f.meaning()
		if next == Working { // SWUpdate's log has its errors; its last message may say only that it failed
			d.Said = join(append([]string{d.Said}, f.errors()...), 600)
		}
		switch {
		case next == "" || next == d.State:
			return nil, nil
		case d.State == Failed || d.State == Cancelled || d.State == Done && next != Failed:
			return nil, gone(action)
		case (d.State == Cancel || d.State == Kept || d.State == Installed) && next == Working: // the order in which requests come is not theirs
			return nil, nil
		case (d.State == Cancel || d.State == Kept) && next == Installed:
			return nil, nil
		}
		d.State = next
		r := &ota.Status{ID: name("action", d.Since.String(), string(d.Release), string(next)), Phase: phase}
		switch next {
		case Done:
			d.Running, d.Told = string(d.Release), false
		case Failed:
			r.Code, r.Reason = int(ota.Other), join(append(strings.Split(d.Said, "; "), f.Details...), 1000)
			if ota.Code(f.Code) >= ota.WrongOrder && ota.Code(f.Code) <= ota.Other {
				r.Code = f.Code
			}
		case Cancelled:
			r.Reason = cancelled
		}
		return r, nil
	})
	return err
}

const cancelled = "the update was cancelled"

// Stopped takes what a device says of the order to stop.
func (s *Service) Stopped(ctx context.Context, id thing.ID, action int32, f Feedback, agent string) error {
	_, err := s.change(ctx, id, agent, func(d *Device) (*ota.Status, error) {
		switch {
		case d.Action != action || d.State != Cancel && d.State != Kept && d.State != Cancelled:
			return nil, gone(action)
		case f.Execution == "rejected" && d.State == Cancel:
			d.State = Kept
		case (f.Execution == "closed" || f.Execution == "canceled") && d.State != Cancelled:
			d.State = Cancelled
			return &ota.Status{ID: name("action", d.Since.String(), string(d.Release), string(Cancelled)), Phase: ota.Pending, Reason: cancelled}, nil
		}
		return nil, nil
	})
	return err
}

// Limits of attributes.
const (
	maxAttributes = 100
	maxAttribute  = 256 // bytes of a name, and of a value
)

// Describe takes what a device says of itself. mode is merge (or ""), replace or remove. Of its attributes "version" is the release that it runs, "hardware" its
// model, and "region" becomes a tag, such as region-eu.
func (s *Service) Describe(ctx context.Context, id thing.ID, mode string, data map[string]string, agent string) error {
	if !slices.Contains([]string{"", "merge", "replace", "remove"}, mode) {
		return errs.New(errs.Invalid, "mode %.20q: want merge, replace or remove", mode)
	}
	for k, v := range data {
		if k == "" || len(k) > maxAttribute || len(v) > maxAttribute || strings.ContainsRune(k+v, 0) {
			return errs.New(errs.Invalid, "attribute %.40q: want a name and a value of at most %d bytes, without zero bytes", k, maxAttribute)
		}
	}
	before, after := "", ""
	_, err := s.change(ctx, id, agent, func(d *Device) (*ota.Status, error) {
		before = regionTag(d.Attributes["region"])
		next := map[string]string{}
		if mode != "replace" {
			maps.Copy(next, d.Attributes)
		}
		if mode == "remove" {
			maps.DeleteFunc(next, func(k, _ string) bool { _, ok := data[k]; return ok })
		} else {
			maps.Copy(next, data)
		}
		if len(next) > maxAttributes {
			return nil, errs.New(errs.Exhausted, "the device would have %d attributes: want at most %d", len(next), maxAttributes)
		}
		d.Attributes, d.Told, after = next, true, regionTag(next["region"])
		if v, said := next["version"]; said {
			d.Running = registry.Clip(v, 64)
		}
		if d.State == Installed && d.Running == string(d.Release) { // a client that forgets what it did when it restarts
			d.State = Done
			return &ota.Status{ID: name("action", d.Since.String(), string(d.Release), string(Done)), Phase: ota.Current}, nil
		}
		return nil, nil
	})
	if err != nil || before == after {
		return err
	}
	var add, remove []string
	if after != "" {
		add = []string{after}
	}
	if before != "" {
		remove = []string{before}
	}
	if _, err := s.Tag(ctx, id, add, remove); err != nil {
		s.Log.WarnContext(ctx, "region of a device not tagged", logging.Thing, id, "region", after, logging.Err, err)
	}
	return nil
}

// regionTag makes a tag of a region; "" of none, or of one that cannot be one.
func regionTag(region string) string {
	tag := "region-" + strings.ToLower(strings.TrimSpace(region))
	if registry.CheckTag(tag) != nil {
		return ""
	}
	return tag
}
