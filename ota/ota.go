package ota

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Version is a release's version: four dotted decimal numbers, then nothing, "d" (developer) or "ud" (VEC-OTA-09). "" is no release.
type Version string

var versionPattern = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9}){3}(d|ud)?$`)

// ParseVersion checks s; the empty version is an error. Errors are of kind Invalid.
func ParseVersion(s string) (Version, error) {
	if !versionPattern.MatchString(s) {
		return "", errs.New(errs.Invalid, `version %.64q: want four numbers with dots, such as 2.0.1.6076, then nothing, "d" or "ud"`, s)
	}
	return Version(s), nil
}

// Suffix returns the letters after the numbers: "", "d" (developer) or "ud" (userdev).
func (v Version) Suffix() string { return strings.TrimLeft(string(v), "0123456789.") }

// Compare orders versions by their numbers alone: -1 if v is older than w, 0 if they have the same numbers, 1 if v is newer.
func (v Version) Compare(w Version) int { return slices.Compare(v.numbers(), w.numbers()) }

func (v Version) numbers() (ns []int) {
	for part := range strings.SplitSeq(strings.TrimSuffix(string(v), v.Suffix()), ".") {
		n, _ := strconv.Atoi(part) // ParseVersion let only digits through
		ns = append(ns, n)
	}
	return ns
}

// Release is something a species can be updated to.
type Release struct {
	Species thing.Species `json:"species"`
	Version Version       `json:"version"`
	Notes   string        `json:"notes,omitempty"`  // for people, at most MaxNotes bytes
	Lowest  Version       `json:"lowest,omitempty"` // that it can be installed on; a robot that runs an older version gets that release first. "": any
	Created time.Time     `json:"created"`
	Artifact
}

// Actions of the audit log. The object is a species or a robot, the detail a version; "" takes a wish back.
const (
	AuditAdd    = "release.add"
	AuditWant   = "release.want"
	AuditChoose = "update.choose"  // by the owner of a robot; detail: now, tonight, or for how long it is postponed
	AuditLowest = "release.lowest" // detail: a version, and the lowest that it can be installed on
)

// MaxNotes bounds a release's notes, in bytes.
const MaxNotes = 16 << 10

// Phase says where a robot is on its way to the desired release. Other words than these are kept as they come, so that a newer robot
// is understood by an older cloud.
type Phase string

// The phases so far.
const (
	Current Phase = "current" // it runs the desired release, or none is desired
	Pending Phase = "pending" // it knows the desired release and has not begun

	Downloading Phase = "downloading" // and writing to its other slot
	Installed   Phase = "installed"   // it waits for the reboot
	Failed      Phase = "failed"      // Code and Reason say why
	FellBack    Phase = "fell_back"   // the release was installed, and the robot returned to the one before it
)

// Cause says as a word why a robot has not begun. Other words than these are kept as they come.
type Cause string

// The words so far.
const (
	WaitOwner   Cause = "owner"   // postponed
	WaitWindow  Cause = "window"  // by its operator, or until the night
	WaitCharger Cause = "charger" // it is not on its charger
	WaitBattery Cause = "battery" // low
	WaitHeat    Cause = "heat"
	WaitBody    Cause = "body"    // battery and charger are not known
	WaitTrial   Cause = "trial"   // of the running release
	WaitArchive Cause = "archive" // the cloud has none
	WaitTurn    Cause = "turn"    // other robots are first
	WaitOffline Cause = "offline"
	WaitNever   Cause = "unsupported" // this robot does not install releases
)

var wordPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// DesiredRequest is the body of req/ota/desired.
type DesiredRequest struct {
	V       int    `json:"v"`
	Running string `json:"running,omitempty"` // what the robot runs, as it calls it
}

// Desired is the answer, and the payload of the hint. A robot asks again right before it begins, and begins only while the answer has a release. All but V and Release may be missing.
type Desired struct {
	V        int       `json:"v"`
	Release  Version   `json:"release,omitempty"` // "": nothing is desired, stay
	Since    time.Time `json:"since,omitzero"`
	Rollout  string    `json:"rollout,omitempty"`  // whose turn of the robot it is; "": a person asked for the release
	Rollback bool      `json:"rollback,omitempty"` // the robot returns to the version that it ran before: Release may be older than the running one, and is not downloaded if a slot still has it
	Until    time.Time `json:"until,omitzero"`     // begin before; a robot that is later asks again
	Window   *Window   `json:"window,omitempty"`   // begin, and restart, only within
	Needs    *Needs    `json:"needs,omitempty"`    // begin only if they hold; a robot that waits for them reports Pending with the reason
	Rate     int64     `json:"rate,omitempty"`     // download at most so many bytes a second
	// NotBefore: the robot's owner postponed the release until then. It comes without an address, so that agents that do not know it wait, too.
	NotBefore time.Time `json:"not_before,omitzero"`
	Artifact
}

// Needs are what must hold on the robot before it begins.
type Needs struct {
	Battery bool `json:"battery,omitempty"` // its battery is not low (VEC-PWR-02)
	Charger bool `json:"charger,omitempty"` // it is on its charger
}

// Artifact says where a release's archive is. A release of which only its version is known has none.
type Artifact struct {
	URL    string `json:"url,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of the archive, in hex
	Size   int64  `json:"size,omitempty"`   // bytes
}

// RoleState is the state of a role of the releases' metadata (ota/trust), for people.
type RoleState struct {
	Role      string    `json:"role"`
	Version   int64     `json:"version"`
	Expires   time.Time `json:"expires"`
	Keys      []string  `json:"keys"` // ids of those that sign it
	Threshold int       `json:"threshold"`
	Here      bool      `json:"signed_here"` // the cloud signs it by itself
	Archives  int       `json:"archives"`
	Problem   string    `json:"problem,omitempty"` // for an operator to solve
}

// maxURL bounds an address, in bytes: one that AWS signs with the credentials of a role has a token of more than 1,000.
const maxURL = 8000

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Check reports what is wrong with an artifact; an empty one is right.
func (a Artifact) Check() error {
	switch u, err := url.Parse(a.URL); {
	case a == Artifact{}:
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(a.URL) > maxURL:
		return errs.New(errs.Invalid, "artifact: url %.100q: want http or https, a host and at most %d bytes", a.URL, maxURL)
	case a.SHA256 != "" && !hashPattern.MatchString(a.SHA256):
		return errs.New(errs.Invalid, "artifact: sha256 %.80q: want 64 lower-case hex digits", a.SHA256)
	case a.Size < 0:
		return errs.New(errs.Invalid, "artifact: size %d: want 0 or more bytes", a.Size)
	}
	return nil
}

// Status is one report of a robot.
type Status struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`                // unique per robot; the same id is the same report again
	Release Version   `json:"release,omitempty"` // the desired release that the report is about; "" if none
	Since   time.Time `json:"since,omitzero"`    // of that Desired, unchanged; robots of earlier releases leave it out
	Running string    `json:"running,omitempty"` // what it runs now
	Next    Version   `json:"next,omitempty"`    // what its next boot starts; "": what it runs now, or the robot is of an earlier release
	Phase   Phase     `json:"phase"`
	Code    int       `json:"code,omitempty"`    // 0, or the robot's own exit code 200 to 219
	Reason  string    `json:"reason,omitempty"`  // in words
	Waits   Cause     `json:"waits,omitempty"`   // of Pending: why it has not begun
	Percent int       `json:"percent,omitempty"` // of Downloading: how much of the archive
	TS      int64     `json:"ts"`                // robot's clock, ms since 1970
}

// Encode returns the report as JSON.
func (s Status) Encode() ([]byte, error) { s.V = 1; return json.Marshal(s) }

// Encode returns the answer as JSON.
func (d Desired) Encode() ([]byte, error) { d.V = 1; return json.Marshal(d) }

// ParseDesired reads and checks an answer or a hint.
func ParseDesired(b []byte) (Desired, error) {
	var d Desired
	if err := json.Unmarshal(b, &d); err != nil {
		return Desired{}, errs.New(errs.Invalid, "ota desired: %w", err)
	}
	if d.V != 1 {
		return Desired{}, errs.New(errs.Invalid, "ota desired: version %d: want 1", d.V)
	}
	if d.Release != "" {
		if _, err := ParseVersion(string(d.Release)); err != nil {
			return Desired{}, fmt.Errorf("ota desired: %w", err)
		}
	}
	if d.Window != nil {
		if err := d.Window.Check(); err != nil {
			return Desired{}, fmt.Errorf("ota desired: %w", err)
		}
	}
	if err := d.Artifact.Check(); err != nil {
		return Desired{}, fmt.Errorf("ota desired: %w", err)
	}
	return d, nil
}

// ParseRequest reads and checks a request; an empty body asks as well.
func ParseRequest(b []byte) (DesiredRequest, error) {
	if len(b) == 0 {
		return DesiredRequest{V: 1}, nil
	}
	var r DesiredRequest
	if err := json.Unmarshal(b, &r); err != nil {
		return DesiredRequest{}, errs.New(errs.Invalid, "ota request: %w", err)
	}
	switch {
	case r.V != 1:
		return DesiredRequest{}, errs.New(errs.Invalid, "ota request: version %d: want 1", r.V)
	case len(r.Running) > 64:
		return DesiredRequest{}, errs.New(errs.Invalid, "ota request: running has %d bytes: want at most 64", len(r.Running))
	}
	return r, nil
}

// ParseStatus reads and checks a report. Errors are of kind Invalid; if the report's id could be read it is in the returned Status, so
// that the refusal can name it.
func ParseStatus(b []byte) (Status, error) {
	var s Status
	bad := func(format string, args ...any) (Status, error) {
		return Status{ID: s.ID}, errs.New(errs.Invalid, "ota status: "+format, args...)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		if len(s.ID) > 64 {
			s.ID = ""
		}
		return bad("%w", err)
	}
	if s.ID == "" || len(s.ID) > 64 || strings.ContainsRune(s.ID, 0) {
		s.ID = ""
		return bad("id: want 1 to 64 characters")
	}
	switch {
	case s.V != 1:
		return bad("version %d: want 1", s.V)
	case !wordPattern.MatchString(string(s.Phase)):
		return bad("phase %.40q: want a word such as current or pending", s.Phase)
	case s.Code < 0 || s.Code > 999:
		return bad("code %d: want 0 to 999", s.Code)
	case len(s.Reason) > 1024 || len(s.Running) > 64:
		return bad("reason has %d and running %d bytes: want at most 1024 and 64", len(s.Reason), len(s.Running))
	case s.Waits != "" && !wordPattern.MatchString(string(s.Waits)):
		return bad("waits %.40q: want a word such as charger", s.Waits)
	case s.Percent < 0 || s.Percent > 100:
		return bad("percent %d: want 0 to 100", s.Percent)
	case strings.ContainsRune(s.Reason+s.Running, 0):
		return bad("reason or running contains a zero byte")
	}
	for _, v := range []Version{s.Release, s.Next} {
		if v == "" {
			continue
		}
		if _, err := ParseVersion(string(v)); err != nil {
			return bad("release: %w", err)
		}
	}
	return s, nil
}
