package cube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/env/robotfs"
	"kennel/infra/logging"
)

// PreferredFile has the factory id of the cube that the robot prefers. It is the owner's: it goes with the user data.
const PreferredFile = "data/kennel/cube.json"

// DefaultScan is how long a robot listens for cubes; own default (VEC-CUB-02).
const DefaultScan = 3 * time.Second

// LowVolts is the voltage at and below which a cube's battery is low (VEC-CUB-04).
const LowVolts = 1.1

// EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	Available EventKind = iota + 1 // it was heard while the robot listened
	Connected
	Disconnected // by the robot
	Lost         // the connection broke
	Moved
	Stopped
	Tapped
	Turned  // Up is the axis
	Battery // its first reading, and when it gets low or good
)

// Event is something that happened to a cube.
type Event struct {
	Kind    EventKind
	At      time.Duration // CLOCK_MONOTONIC
	Address string
	ID      uint32 // of the object, as programs know it; 0: a cube that was heard alone
	Up      Up
	Volts   float64
}

// Config configures a Driver. All but Scan is required.
type Config struct {
	Radio Radio
	Root  *os.Root // the robot's
	Log   *slog.Logger
	Tell  func(Event) // hears what happens; it does not block, and is called by several goroutines
	Scan  time.Duration
}

// State is a cube that is connected.
type State struct {
	Address  string
	ID       uint32
	Up       Up
	Moving   bool
	Moves    int // how often it began to move since it was connected
	Volts    float64
	Measured bool          // Volts is known
	Age      time.Duration // since Volts was measured
}

// Driver has at most one cube. Safe for concurrent use.
type Driver struct {
	cfg Config

	dial sync.Mutex // held while a connection is made or ended

	mu    sync.Mutex
	ids   []string      // addresses; the id is the index plus one
	state *State        // nil: no cube
	at    time.Duration // when its Volts were measured, CLOCK_MONOTONIC
	link  Link
	heard chan struct{} // closed when the goroutine that hears link has ended
}

// New returns a driver without a cube. It starts nothing.
func New(cfg Config) *Driver {
	cfg.Scan = cmp.Or(cfg.Scan, DefaultScan)
	return &Driver{cfg: cfg}
}

// Preferred returns the factory id of the cube that the robot prefers; "": none.
func (d *Driver) Preferred() (string, error) {
	var f struct{ Preferred string }
	if err := robotfs.ReadJSON(d.cfg.Root, PreferredFile, &f); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("preferred cube: %w", err)
	}
	return f.Preferred, nil
}

// Prefer stores which cube the robot prefers; "": none (VEC-CUB-03).
func (d *Driver) Prefer(address string) error {
	if address != "" {
		if err := CheckAddress(address); err != nil {
			return err
		}
	}
	b, err := json.Marshal(map[string]string{"preferred": address})
	if err != nil {
		return err
	}
	if err := robotfs.WriteFile(d.cfg.Root, PreferredFile, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("preferred cube: %w", err)
	}
	return nil
}

// Scan listens for cubes and returns those that it heard, strongest first (VEC-CUB-02). Each is told once as Available. A cube that is connected does not advertise.
func (d *Driver) Scan(ctx context.Context) ([]Advert, error) {
	var all []Advert
	err := d.cfg.Radio.Scan(ctx, d.cfg.Scan, func(a Advert) {
		if a.Name != Name {
			return
		}
		if i := slices.IndexFunc(all, func(x Advert) bool { return x.Address == a.Address }); i >= 0 {
			all[i].RSSI = max(all[i].RSSI, a.RSSI)
			return
		}
		if len(all) < maxHeard {
			all = append(all, a)
			d.cfg.Tell(Event{Kind: Available, At: monoclock.Now(), Address: a.Address})
		}
	})
	slices.SortStableFunc(all, func(a, b Advert) int { return cmp.Compare(b.RSSI, a.RSSI) })
	return all, err
}

// maxHeard is how many cubes a scan tells of; own default.
const maxHeard = 64

// State returns the cube that is connected; false: none.
func (d *Driver) State() (State, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nil {
		return State{}, false
	}
	s := *d.state
	if s.Measured {
		s.Age = monoclock.Now() - d.at
	}
	return s, true
}

// Connect connects with the preferred cube, or if that is not heard with the strongest (VEC-CUBE-04, VEC-CUB-01). The first cube becomes the preferred one. With a cube
// that is connected it does nothing. ErrAbsent: no cube was heard.
func (d *Driver) Connect(ctx context.Context) (State, error) {
	d.dial.Lock()
	defer d.dial.Unlock()
	if s, ok := d.State(); ok {
		return s, nil
	}
	preferred, err := d.Preferred()
	if err != nil {
		d.cfg.Log.WarnContext(ctx, "preferred cube unreadable; the strongest is taken", logging.Err, err)
	}
	heard, err := d.Scan(ctx)
	if err != nil {
		return State{}, err
	}
	if len(heard) == 0 {
		return State{}, ErrAbsent
	}
	choice := heard[0]
	for _, a := range heard {
		if a.Address == preferred {
			choice = a
		}
	}
	link, err := d.cfg.Radio.Connect(ctx, choice.Address)
	if err != nil {
		return State{}, err
	}
	if err := prepare(ctx, link); err != nil {
		return State{}, errors.Join(err, link.Close())
	}
	if preferred == "" {
		if err := d.Prefer(choice.Address); err != nil {
			return State{}, errors.Join(err, link.Close())
		}
	}
	return d.take(link, choice.Address), nil
}

// prepare makes a cube ready for programs: it has its own program, tells what it feels and is dark.
func prepare(ctx context.Context, link Link) error {
	version, err := link.Read(ctx, Version)
	switch {
	case err != nil:
		return err
	case len(version) == 0: // part of VEC-CUBEFW-01
		return errors.New("cube: it has lost its program, and this robot has none to send")
	}
	if err := link.Pace(ctx, Interactable); err != nil {
		return err
	}
	if err := show(ctx, link, Dark); err != nil {
		return err
	}
	return link.Subscribe(ctx, Motion)
}

// take makes link the connection.
func (d *Driver) take(link Link, address string) State {
	d.mu.Lock()
	i := slices.Index(d.ids, address)
	if i < 0 {
		i = len(d.ids)
		d.ids = append(d.ids, address)
	}
	s := State{Address: address, ID: uint32(i + 1)}
	d.state, d.link, d.heard = &State{Address: s.Address, ID: s.ID}, link, make(chan struct{})
	heard := d.heard
	d.mu.Unlock()
	d.cfg.Tell(Event{Kind: Connected, At: monoclock.Now(), Address: address, ID: s.ID})
	go func() {
		defer close(heard)
		d.hear(link, s)
	}()
	return s
}

// hear tells what a cube feels until its link ends.
func (d *Driver) hear(link Link, s State) {
	var feeling Feeling
	low, moves := -1, 0
	for {
		c, value, err := link.Next()
		if err != nil {
			break
		}
		if c != Motion {
			continue
		}
		r, err := ParseReport(value)
		if err != nil {
			d.cfg.Log.Warn("report of the cube not understood; ignored", logging.Err, err)
			continue
		}
		now := monoclock.Now()
		for _, a := range r.Samples {
			feeling.Add(a, Interactable/samples, func(f Felt) {
				e := Event{At: now, Address: s.Address, ID: s.ID}
				switch f {
				case FeltMoved:
					e.Kind = Moved
					moves++
				case FeltStopped:
					e.Kind = Stopped
				case FeltTapped:
					e.Kind = Tapped
				case FeltTurned:
					e.Kind, e.Up = Turned, feeling.Up()
				}
				d.cfg.Tell(e)
			})
		}
		d.mu.Lock()
		if d.link == link {
			d.state.Up, d.state.Moving, d.state.Moves, d.state.Volts, d.state.Measured, d.at = feeling.Up(), feeling.Moving(), moves, r.Volts(), true, now
		}
		d.mu.Unlock()
		level := 0
		if r.Volts() > LowVolts {
			level = 1
		}
		if level != low {
			low = level
			d.cfg.Tell(Event{Kind: Battery, At: now, Address: s.Address, ID: s.ID, Volts: r.Volts()})
		}
	}
	if d.drop(link) {
		_ = link.Close() // it has ended
		d.cfg.Tell(Event{Kind: Lost, At: monoclock.Now(), Address: s.Address, ID: s.ID})
	}
}

// drop forgets a link; false: it was not the connection.
func (d *Driver) drop(link Link) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if link == nil || d.link != link {
		return false
	}
	d.state, d.link = nil, nil
	return true
}

// Disconnect ends the connection, if there is one.
func (d *Driver) Disconnect() error {
	d.dial.Lock()
	defer d.dial.Unlock()
	d.mu.Lock()
	link, state, heard := d.link, d.state, d.heard
	d.mu.Unlock()
	if !d.drop(link) {
		return nil
	}
	err := link.Close()
	<-heard
	d.cfg.Tell(Event{Kind: Disconnected, At: monoclock.Now(), Address: state.Address, ID: state.ID})
	return err
}

// Show lets the lights play a pattern. ErrLost: there is no cube.
func (d *Driver) Show(ctx context.Context, p Pattern) error {
	d.mu.Lock()
	link := d.link
	d.mu.Unlock()
	if link == nil {
		return ErrLost
	}
	return show(ctx, link, p)
}

func show(ctx context.Context, link Link, p Pattern) error {
	all, err := Compile(p)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := link.Write(ctx, Lights, c.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}
