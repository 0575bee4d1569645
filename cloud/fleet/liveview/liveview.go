// Package liveview lets people look at a robot's structure tree while it lives.
//
//	Look (page, API) -> down/live, at most each AskEvery -> robot -> up/live, twice a second for a while -> Handle -> newest frame -> Look
//
// A robot without a viewer sends nothing, and no frame is kept: this is a robot's present, not its history (package vitals). A picture of its display needs the
// owner's consent to data collection, because programs may show what they like there.
package liveview

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/live"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Our own limits.
const (
	AskEvery = 5 * time.Second  // between two requests to a robot with a viewer
	AskFor   = 15 * time.Second // it shows itself for so long after each
	Keep     = time.Hour        // a frame without a viewer
	Fresh    = 5 * time.Second  // an older picture of a display is not shown
	sendTime = 3 * time.Second
)

// Frame is the newest frame of a robot. Tree is of the newest that had one, and so is the map of a simulated robot's world, if it belongs to it.
type Frame struct {
	At    time.Time // by the cloud's clock; zero: none came yet
	Age   time.Duration
	Tree  *live.Tree
	Frame live.Frame
}

// Store is the storage that Service needs. It goes by the database's clock, so that processes agree.
type Store interface {
	// Ask notes a viewer, and reports whether the robot is to be told: it was not told within every.
	Ask(ctx context.Context, id thing.ID, every time.Duration) (bool, error)
	// Put keeps a frame of a robot that has a viewer; for any other it does nothing.
	Put(ctx context.Context, id thing.ID, f live.Frame) error
	// Newest returns the newest frame; the zero Frame if there is none.
	Newest(ctx context.Context, id thing.ID) (Frame, error)
	// Forget removes frames that had no viewer for keep.
	Forget(ctx context.Context, keep time.Duration) error
}

// Send publishes one message on the thing's down/<name>.
type Send func(ctx context.Context, id thing.ID, name string, payload []byte) error

// Allowed reports whether data of a robot may be collected now: it has no owner, or its owner allows it.
type Allowed func(ctx context.Context, id thing.ID) (bool, error)

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store   Store
	send    Send
	allowed Allowed // pictures of the display; nil: no robot's
	log     *slog.Logger
}

// New returns a service on store. allowed is asked before a picture of a display is kept for the viewer and before it is shown; nil: none is.
func New(store Store, send Send, allowed Allowed, log *slog.Logger) *Service {
	return &Service{store, send, allowed, log}
}

// mayShow reports whether a picture of a robot's display may be kept and shown now.
func (s *Service) mayShow(ctx context.Context, id thing.ID) bool {
	if s.allowed == nil {
		return false
	}
	may, err := s.allowed(ctx, id)
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "consent of the owner not known; display not shown", logging.Thing, id, logging.Err, err)
	}
	return err == nil && may
}

// Handle takes a message of up/live; its form is kitmqtt.UpHandler. Nothing is answered: the next one is near.
func (s *Service) Handle(ctx context.Context, id thing.ID, payload []byte, _ func(ack.Ack)) {
	f, err := live.ParseFrame(payload)
	if err != nil {
		s.log.WarnContext(ctx, "live frame unreadable", logging.Thing, id, logging.Err, err)
		return
	}
	if f.Display != nil && !s.mayShow(ctx, id) {
		f.Display = nil
	}
	if err := s.store.Put(ctx, id, f); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "live frame not stored", logging.Thing, id, logging.Err, err)
	}
}

// Look returns how a robot is, and sees that there will be something newer for who asks again.
func (s *Service) Look(ctx context.Context, id thing.ID) (Robot, error) {
	tell, err := s.store.Ask(ctx, id, AskEvery)
	if err != nil {
		return Robot{}, err
	}
	if tell {
		payload, err := live.Look{ForMS: AskFor.Milliseconds()}.Encode()
		if err != nil {
			return Robot{}, err
		}
		sctx, cancel := context.WithTimeout(ctx, sendTime)
		defer cancel()
		if err := s.send(sctx, id, topics.Live, payload); err != nil {
			s.log.WarnContext(ctx, "viewer not announced to the robot", logging.Thing, id, logging.Err, err) // what is known is shown, with its age
		}
	}
	f, err := s.store.Newest(ctx, id)
	if err != nil {
		return Robot{}, err
	}
	if f.Frame.Display != nil && (f.Age > Fresh || !s.mayShow(ctx, id)) {
		f.Frame.Display = nil
	}
	return robot(id, f), nil
}

// Forget removes frames that no longer have a viewer; a periodic job.
func (s *Service) Forget(ctx context.Context) error { return s.store.Forget(ctx, Keep) }

// Robot is a robot's tree with its values, as people and programs get it.
type Robot struct {
	Thing thing.ID `json:"thing"`
	// Received is when the robot said this; absent: it has said nothing yet, ask again.
	Received *time.Time   `json:"received,omitempty"`
	AgeMS    int64        `json:"age_ms"` // since Received
	Body     string       `json:"body,omitempty"`
	Devices  []Device     `json:"devices"` // parents first
	Motion   *live.Motion `json:"motion,omitempty"`
	// World is where the robot really is, as its simulator says; absent: it is none that is simulated, or the map is not known yet.
	World *live.World `json:"world,omitempty"`
	// Playing is the animation or motion that it plays for a person; absent: none.
	Playing *live.Playing `json:"playing,omitempty"`
	// Display is a picture of its display, as JPEG, in base64; absent: it has none, or its owner does not allow data collection.
	Display []byte `json:"display,omitempty"`
}

// Device is one of the tree.
type Device struct {
	Full      string   `json:"full"`
	Compact   string   `json:"compact"`
	Kind      string   `json:"kind"`
	Interface string   `json:"interface"`
	Actuator  bool     `json:"actuator"`
	Slots     []Slot   `json:"slots,omitempty"`
	Aliases   []string `json:"aliases,omitempty"` // further short names
	Bearing   *float64 `json:"bearing,omitempty"` // rad, where a sensor looks, counter-clockwise from the front
	// Gone names the missing device, or the missing one that it is a part of: it keeps its place, and its values are unavailable (GOSTAI-OPEN-13).
	Gone *live.Gone `json:"gone,omitempty"`
}

// Slot is an attribute and what it reads as.
type Slot struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Unit  string   `json:"unit,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
	Known bool     `json:"known"` // it has been measured or set
	// Unavailable: its device is gone, so its value is unknown.
	Unavailable bool   `json:"unavailable,omitempty"`
	Value       any    `json:"value,omitempty"`  // a number, true or false, a text; "inf" or "-inf" for nothing in range
	AgeMS       *int64 `json:"age_ms,omitempty"` // since it was measured; absent: it never changes, or is not known
}

// robot joins a frame's values to its tree.
func robot(id thing.ID, f Frame) Robot {
	r := Robot{Thing: id, Devices: []Device{}}
	if f.At.IsZero() || f.Tree == nil {
		return r
	}
	at := f.At.UTC()
	r.Received, r.AgeMS, r.Body, r.Motion = &at, f.Age.Milliseconds(), f.Tree.Body, f.Frame.Motion
	r.Playing, r.Display = f.Frame.Playing, f.Frame.Display
	if w := f.Frame.World; w != nil && w.Map != nil {
		r.World = w
	}
	values := make(map[int]live.Value, len(f.Frame.Values))
	for _, v := range f.Frame.Values {
		values[v.Slot] = v
	}
	for _, n := range f.Tree.Nodes {
		d := Device{Full: n.Full, Compact: n.Compact, Kind: n.Kind, Interface: n.Interface, Actuator: n.Actuator, Aliases: n.Aliases, Bearing: n.Bearing,
			Gone: gone(f.Frame.Gone, n.Full, r.AgeMS)}
		for _, s := range n.Slots {
			slot := Slot{Name: s.Name, Type: s.Type, Unit: s.Unit, Min: s.Min, Max: s.Max}
			if v, ok := values[s.ID]; ok {
				slot.Known = true
				slot.Value = valueOf(s.Type, v)
				if v.AgeMS >= 0 {
					age := v.AgeMS + r.AgeMS
					slot.AgeMS = &age
				}
			}
			slot.Unavailable = !slot.Known && d.Gone != nil
			d.Slots = append(d.Slots, slot)
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

// gone is the nearest of all that a device is or is a part of, age milliseconds later; nil if there is none.
func gone(all []live.Gone, full string, age int64) *live.Gone {
	var found *live.Gone
	for _, g := range all {
		if rest, ok := strings.CutPrefix(full, g.Full); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (found == nil || len(g.Full) > len(found.Full)) {
			g.ForMS += age
			found = &g
		}
	}
	return found
}

func valueOf(kind string, v live.Value) any {
	switch {
	case v.Infinite > 0:
		return "inf"
	case v.Infinite < 0:
		return "-inf"
	case v.Text != nil:
		return *v.Text
	case kind == "bool":
		return *v.Number != 0
	}
	return *v.Number
}

// String prints a slot's value for people, with its unit.
func (s Slot) String() string {
	switch v := s.Value.(type) {
	case nil:
		if s.Unavailable {
			return "unavailable"
		}
		return "not known"
	case float64:
		if s.Type == "int" {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.4g", v)
	default:
		return fmt.Sprint(v)
	}
}
