// Package bodysim says how the body of a simulated robot is made and run, for any species. The simulator of a species, edge/body/<species>/<species>sim, fills in a
// Species, and edge/sim lists them all.
package bodysim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Species is a kind of robot that can be simulated.
type Species struct {
	thing.Species
	Volts float64                    // of its battery at the first boot, where nothing else is said
	Flags func(root string) []string // of robotd, beside -body; nil: none
	Card  string                     // folder below the root with what is on its memory card; "": it has no slot for one
	New   func(Place) (Body, error)
}

// Word returns the name of the species as flags have it, such as "amigobot".
func (s Species) Word() string { return strings.ToLower(s.Name()) }

// Place is where a body is, and in what condition.
type Place struct {
	Root      *os.Root // the robot's folder, in which the body's lines end
	ID        thing.ID
	World     *plane.Map // nil: nowhere, on an endless floor
	Seed      uint64     // of all that is random
	Volts     float64    // of the battery
	OnCharger bool
	Press     time.Duration // how long the button is held at the first boot, which decides its kind (VEC-BOOT-02); 0: just as long as it needs
	Sounds    string        // folder below Root with the sounds that can be played to it
	Log       *slog.Logger
	Begun     func() // hears that the body reckons from where it is from now on
}

// Path returns where a file below Root is.
func (p *Place) Path(name string) string { return filepath.Join(p.Root.Name(), name) }

// HangUp closes the body's end of a line.
func (p *Place) HangUp(ctx context.Context, line io.Closer) {
	if err := line.Close(); err != nil {
		p.Log.WarnContext(ctx, "body line not closed", logging.Err, err)
	}
}

// Boot says which system the head of a simulated robot starts.
type Boot string

// The boots.
const (
	Undecided Boot = "undecided"
	Normal    Boot = "normal"
	Recovery  Boot = "recovery"
)

// ErrPowerCut: the body cut the head's power. Its button starts both again.
var ErrPowerCut = errors.New("the body cut the power")

// Body is a simulated body, and what it means for the power of the head on it.
type Body interface {
	Hand
	Ground

	// On runs the body, on lines below the robot's root, until ctx ends (nil) or the body cuts the head's power (an error that wraps ErrPowerCut).
	On(ctx context.Context) error
	// Ready blocks until the body, which is on for the nth time, lets the head boot, and returns what it boots. off: it switched off instead.
	Ready(ctx context.Context, nth uint64) (boot Boot, off bool, err error)
	// Serve runs the simulated devices of the head until ctx ends.
	Serve(ctx context.Context) error
}

// Hand does to a simulated body what a person beside it would.
type Hand interface {
	// Verbs returns what can be done to the body, in the verbs of package poke.
	Verbs() []string
	// Poke does p, which is complete. It returns an error if the body does not feel it, or it is not possible now.
	Poke(p poke.Poke) error
}

// Ground is a body's place in a world.
type Ground interface {
	World() (plane.State, bool) // false: it is nowhere
	InWorld(func(*plane.World) error) error
}

// Carded is a Body with a slot for a memory card.
type Carded interface {
	// Exchange takes the card out, replaces what is on it with the files of a release and puts it in again; a card that has this version already stays.
	Exchange(version string, files map[string][]byte) error
}

// Hearing is a Body with microphones.
type Hearing interface {
	// Heard returns how far the newest sound that was played to it is.
	Heard() Heard
}

// Heard says when the newest sound was played, as CLOCK_MONOTONIC of the simulator, for those who measure what the robot makes of it.
type Heard struct {
	Playing      bool
	Began, Ended time.Duration // the first and the last frame with it; Ended is 0 while it plays
}
