// Package motion keeps the motions that people upload for robots with joints, and makes robots play them.
//
//	upload ─► Put ─► Store, down/motion ─► robot: Sync, File ─► judges ─► Verdict ─► kept, or refused with the reasons
//	play   ─► command "play" ─► robot ─► one result when it has ended
//
// What makes a motion good is a matter of the body, and the robot knows its body: this package reads neither motions nor species (infra/adr/0059). A robot that
// is offline gets its motions, and judges them, when it is back.
package motion

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Our own limits.
const (
	MaxTotal = 2 << 20 // bytes of all uploads for a robot
	playTTL  = 20 * time.Second
	sendTime = 3 * time.Second
)

// State says what became of an uploaded motion.
type State string

// The states.
const (
	Waiting State = "waiting" // the robot has not judged it yet
	Kept    State = "kept"    // the robot can play it
	Refused State = "refused" // Why and Findings say why
)

// Entry is a motion of a robot.
type Entry struct {
	Name     string     `json:"name"`
	Play     string     `json:"play"` // by which programs and the command play know it
	Own      bool       `json:"own"`  // it was uploaded; the others come with the robot's software
	SpanMS   int64      `json:"span_ms,omitempty"`
	State    State      `json:"state"`
	Why      string     `json:"why,omitempty"`
	Findings []Finding  `json:"findings,omitempty"`
	Size     int        `json:"size,omitempty"` // bytes, as it was uploaded
	SHA256   string     `json:"sha256,omitempty"`
	Uploaded *time.Time `json:"uploaded,omitempty"`
	// Motion is its joints and keyframes; absent in lists, and for one that could not be read.
	Motion *motionwire.Sequence `json:"motion,omitempty"`
}

// Finding is one thing that the robot noticed.
type Finding = motionwire.Finding

// Repertoire lists what a robot can do by its joints.
type Repertoire struct {
	Thing thing.ID `json:"thing"`
	Model string   `json:"model,omitempty"` // absent: it has not said yet that it has joints that move by motions
	// Body is how it is made; absent in a list.
	Body    *motionwire.Body `json:"body,omitempty"`
	Motions []Entry          `json:"motions"`
}

// Row is a motion as it is stored.
type Row struct {
	Name, SHA256 string
	Size         int
	Uploaded     time.Time
	Judged, Kept bool
	Verdict      string // JSON; "": none
}

// Store is the storage that Service needs. since hides what was uploaded before.
type Store interface {
	// Put stores a motion without a verdict, and replaces one of that name. Exhausted if the robot has as many others, or as many bytes, as it may.
	Put(ctx context.Context, id thing.ID, name string, file []byte, since time.Time, most int, bytes int64) error
	// Delete removes a motion; NotFound.
	Delete(ctx context.Context, id thing.ID, name string, since time.Time) error
	Rows(ctx context.Context, id thing.ID, since time.Time) ([]Row, error)
	// File returns a motion as it was uploaded, and in the format of the body's own files if it can be said in that; NotFound.
	File(ctx context.Context, id thing.ID, name string, since time.Time) (file, made []byte, err error)
	// Judge stores a verdict about just these bytes; NotFound.
	Judge(ctx context.Context, id thing.ID, r motionwire.Ref, kept bool, verdict string, made []byte) error
	// SetBody notes a robot's body. With another body than before, its verdicts no longer count.
	SetBody(ctx context.Context, id thing.ID, sum, body string) error
	// Body returns the hash and the text of a robot's body; "": none.
	Body(ctx context.Context, id thing.ID) (sum, body string, err error)
}

// Config holds what a Service needs.
type Config struct {
	Store Store
	// Since returns when the lasting ownership of a robot began: what is older is none of its owner's. The zero time: it has no owner.
	Since    func(ctx context.Context, id thing.ID) (time.Time, error)
	Commands *command.Service
	// Send publishes one message on the thing's down/<name>.
	Send func(ctx context.Context, id thing.ID, name string, payload []byte) error
	Log  *slog.Logger
}

// Service holds the rules. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a service.
func New(cfg Config) *Service { return &Service{cfg} }

// body returns a robot's body; nil: it has told none.
func (s *Service) body(ctx context.Context, id thing.ID) (*motionwire.Body, error) {
	_, text, err := s.cfg.Store.Body(ctx, id)
	if err != nil || text == "" {
		return nil, err
	}
	b, err := motionwire.ParseBody([]byte(text))
	if err != nil {
		return nil, errs.New(errs.Corrupt, "stored body of %s: %w", id, err)
	}
	return &b, nil
}

// Has reports whether a robot has joints that move by motions, as far as it said.
func (s *Service) Has(ctx context.Context, id thing.ID) (bool, error) {
	sum, _, err := s.cfg.Store.Body(ctx, id)
	return sum != "", err
}

// List returns what a robot can do: its own library first, then what was uploaded, each by name.
func (s *Service) List(ctx context.Context, id thing.ID) (Repertoire, error) {
	r, err := s.all(ctx, id)
	r.Body = nil
	for i := range r.Motions {
		r.Motions[i].Motion = nil
	}
	return r, err
}

// All is List with the body, and with the joints and keyframes of each motion.
func (s *Service) All(ctx context.Context, id thing.ID) (Repertoire, error) { return s.all(ctx, id) }

func (s *Service) all(ctx context.Context, id thing.ID) (Repertoire, error) {
	r := Repertoire{Thing: id, Motions: []Entry{}}
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return r, err
	}
	if r.Body, err = s.body(ctx, id); err != nil {
		return r, err
	}
	rows, err := s.cfg.Store.Rows(ctx, id, since)
	if err != nil {
		return r, err
	}
	if r.Body != nil {
		r.Model = r.Body.Model
		for i := range r.Body.Motions {
			m := &r.Body.Motions[i]
			if !slices.ContainsFunc(rows, func(x Row) bool { return x.Name == m.Name && x.Kept }) { // an upload from before a library that has the name counts
				r.Motions = append(r.Motions, Entry{Name: m.Name, Play: motionwire.Prefix + m.Name, SpanMS: m.SpanMS, State: Kept, Motion: m})
			}
		}
	}
	for i := range rows {
		m, err := rows[i].motion()
		if err != nil {
			return r, errs.New(errs.Corrupt, "stored verdict on %s of %s: %w", rows[i].Name, id, err)
		}
		r.Motions = append(r.Motions, m)
	}
	return r, nil
}

func (x *Row) motion() (Entry, error) {
	m := Entry{Name: x.Name, Play: motionwire.Prefix + x.Name, Own: true, State: Waiting, Size: x.Size, SHA256: x.SHA256, Uploaded: &x.Uploaded}
	if !x.Judged {
		return m, nil
	}
	var v motionwire.Verdict
	if err := json.Unmarshal([]byte(x.Verdict), &v); err != nil {
		return m, err
	}
	m.Why, m.Findings, m.Motion = v.Why, v.Findings, v.Motion
	if m.State = Refused; x.Kept {
		m.State = Kept
	}
	if v.Motion != nil {
		m.SpanMS = v.Motion.SpanMS
	}
	return m, nil
}

// Get returns one motion of a robot, with its joints and keyframes; NotFound "no_motion".
func (s *Service) Get(ctx context.Context, id thing.ID, name string) (Entry, error) {
	r, err := s.all(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(r.Motions, func(m Entry) bool { return m.Name == name })
	if i < 0 {
		return Entry{}, none(id, name)
	}
	return r.Motions[i], nil
}

func none(id thing.ID, name string) error {
	return errs.Coded(errs.NotFound, "no_motion", "%s has no motion %.60q", id, name)
}

// File returns an uploaded motion and the ending of its file's name: in the format of the body's own motion files if it can be said in that, else as it was
// uploaded. NotFound "no_motion".
func (s *Service) File(ctx context.Context, id thing.ID, name string) (file []byte, ending string, err error) {
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return nil, "", err
	}
	file, made, err := s.cfg.Store.File(ctx, id, name, since)
	if err != nil {
		return nil, "", err
	}
	b, err := s.body(ctx, id)
	if err != nil || b == nil || len(made) == 0 {
		return file, "motion", err
	}
	return made, b.Ending, nil
}

// Put stores a motion for a robot and tells the robot; an older one of that name is replaced. Errors: Invalid for a name that is no word or the name of a motion of
// the robot's library, and for a file that is empty or larger than motionwire.MaxFile; NotFound "no_joints" for a robot that moves by no motions; Exhausted.
func (s *Service) Put(ctx context.Context, id thing.ID, name string, file []byte) (Entry, error) {
	if !motionwire.IsName(name) {
		return Entry{}, errs.Coded(errs.Invalid, "name", "name %.60q: use a lower-case letter, then up to 39 letters, digits and underscores, such as nod_twice", name)
	}
	switch {
	case len(file) == 0:
		return Entry{}, errs.Coded(errs.Invalid, "size", "the file is empty")
	case len(file) > motionwire.MaxFile:
		return Entry{}, errs.Coded(errs.Invalid, "size", "the file has more than %d bytes, the most that a motion may have", motionwire.MaxFile)
	}
	b, err := s.body(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	if b == nil {
		return Entry{}, errs.Coded(errs.NotFound, "no_joints", "%s has not said yet that it has joints that move by motions", id)
	}
	if slices.ContainsFunc(b.Motions, func(m motionwire.Sequence) bool { return m.Name == name }) {
		return Entry{}, errs.Coded(errs.Invalid, "name_taken", "%s is the name of a motion that the robot has anyway; choose another name", name)
	}
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	if err := s.cfg.Store.Put(ctx, id, name, file, since, motionwire.MaxMotions, MaxTotal); err != nil {
		return Entry{}, err
	}
	s.tell(ctx, id)
	return s.Get(ctx, id, name)
}

// Delete removes an uploaded motion and tells the robot. NotFound "no_motion", also for one of the library.
func (s *Service) Delete(ctx context.Context, id thing.ID, name string) error {
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.Delete(ctx, id, name, since); err != nil {
		return err
	}
	s.tell(ctx, id)
	return nil
}

// tell tells a robot that its motions changed. One that does not hear it asks when it connects.
func (s *Service) tell(ctx context.Context, id thing.ID) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := s.cfg.Send(ctx, id, topics.Motion, []byte("{}")); err != nil {
		s.cfg.Log.DebugContext(ctx, "change of motions not announced to the robot", logging.Thing, id, logging.Err, err)
	}
}

// Play makes a robot play an animation, by the name under which the robot lists it, or one of its motions. The command gets one result: done, or failed with the
// reason for which it did not begin or did not end as planned.
func (s *Service) Play(ctx context.Context, id thing.ID, by, name string) (command.Command, error) {
	if motionwire.IsName(name) {
		m, err := s.Get(ctx, id, name)
		switch {
		case errs.CodeOf(err) == "no_motion": // perhaps an animation of another kind
		case err != nil:
			return command.Command{}, err
		case m.State == Refused:
			return command.Command{}, errs.Coded(errs.Conflict, "refused", "the robot refused %s: %s", name, m.Why)
		case m.State == Waiting:
			return command.Command{}, errs.Coded(errs.Conflict, "waiting", "the robot has not checked %s yet", name)
		default:
			name = m.Play
		}
	}
	args, err := json.Marshal(commandwire.PlayArgs{Name: name})
	if err != nil {
		return command.Command{}, err
	}
	return s.cfg.Commands.Send(ctx, command.Draft{Thing: id, Kind: commandwire.Play, Args: args, TTL: playTTL, By: by})
}

// Sync answers a robot that says what it has.
func (s *Service) Sync(ctx context.Context, id thing.ID, h motionwire.Have) (motionwire.Want, error) {
	w := motionwire.Want{V: 1, Motions: []motionwire.Asked{}}
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return w, err
	}
	sum, _, err := s.cfg.Store.Body(ctx, id)
	if err != nil {
		return w, err
	}
	w.Body = sum != h.Body
	rows, err := s.cfg.Store.Rows(ctx, id, since)
	for _, x := range rows {
		if judged := x.Judged && !w.Body; !judged || x.Kept {
			w.Motions = append(w.Motions, motionwire.Asked{Ref: motionwire.Ref{Name: x.Name, SHA256: x.SHA256}, Judge: !judged})
		}
	}
	return w, err
}

// Fetch returns the bytes of a motion to its robot; NotFound if it has other bytes by now.
func (s *Service) Fetch(ctx context.Context, id thing.ID, r motionwire.Ref) (motionwire.File, error) {
	since, err := s.cfg.Since(ctx, id)
	if err != nil {
		return motionwire.File{}, err
	}
	file, _, err := s.cfg.Store.File(ctx, id, r.Name, since)
	if err == nil && motionwire.Sum(file) != r.SHA256 {
		err = none(id, r.Name)
	}
	return motionwire.File{V: 1, File: file}, err
}

// Judge stores a robot's verdict.
func (s *Service) Judge(ctx context.Context, id thing.ID, v motionwire.Verdict) error {
	made := v.File
	v.File = nil
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.cfg.Store.Judge(ctx, id, v.Ref, v.Kept, strings.ReplaceAll(string(b), `\u0000`, "?"), made)
}

// Describe stores how a robot's body is made. It is a motionwire.Body as JSON.
func (s *Service) Describe(ctx context.Context, id thing.ID, body []byte) error {
	if _, err := motionwire.ParseBody(body); err != nil {
		return errs.Coded(errs.Invalid, "malformed", "%w", err)
	}
	return s.cfg.Store.SetBody(ctx, id, motionwire.Sum(body), string(body))
}
