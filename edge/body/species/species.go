// Package species says what programs need to know of a species. Its folder edge/body/<species> fills in a Species, and edge/bodies lists them all; so
// robotd, agentd and robotkit know none by name. What a simulated robot needs besides is in bodysim.
package species

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/env"
	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/faultcode"
	"kennel/edge/robot"
	"kennel/edge/startup"
	"kennel/infra/runner"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// OpenTimeout is how long one attempt to open a body may take.
const OpenTimeout = 3 * time.Second

// Species describes one species. A nil function is something that the species does not have.
type Species struct {
	thing.Species

	Tree   func() (*robot.Tree, error)
	Models []Model // with trees of their own

	Device string                                                         // its usual port: a path below the root, or an address such as tcp:localhost:8101
	Model  func() (control.Model, error)                                  // its parts at work: what the body can do
	Open   func(ctx context.Context, device string) (body.Body, error)    // nil: robotd cannot drive it
	Fault  func(error) faultcode.Code                                     // the numbered fault for an error of Open or Read; 0: none in particular
	Equip  func(flags *pflag.FlagSet) (begin func(Host) (Opening, error)) // instead of Open alone, for a body with more to it than a port: adds robotd's flags for it
	Memory func(dir string, id thing.ID) Memory                           // the parameters that the body of the robot in the folder dir stores itself

	Hardware env.Hardware // nil: a head as Vector's

	// Display turns the display of the robot in a folder on; it is dark. fs.ErrNotExist is in the error's chain if it has none. nil: no body has one.
	Display func(ctx context.Context, root *os.Root) (Display, error)

	// Page is its part of the robot's own page (edge/gateway/scratch): part.mjs, whose default export makes a section of the page, part.css and what both need.
	// nil: it has none.
	Page fs.FS
}

// Word returns the name of the species as flags and folders have it, such as "amigobot".
func (s Species) Word() string { return strings.ToLower(s.Name()) }

// Display is a display that is on. It belongs to one goroutine. After an error it must be opened again.
type Display interface {
	Show(*face.Picture) error
	Light(level float64) error // its backlight, 0 to 1; what is beyond that is limited
	Close() error
}

// Model is one model of a species.
type Model struct {
	Name    string // such as "ers-7"
	Tree    func() (*robot.Tree, error)
	Control func() (control.Model, error) // its parts at work; nil: as those of its species
}

// Named returns the model of that name; the error lists those there are.
func (s Species) Named(name string) (Model, error) {
	var names []string
	for _, m := range s.Models {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, fmt.Errorf("model %.40q of %s: want one of %s", name, s.Name(), strings.Join(names, ", "))
}

// ModelIn returns the parts at work of the robot in the folder root: of the model that the folder names, or of the species if it names none.
func (s Species) ModelIn(root string) (control.Model, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return control.Model{}, err
	}
	defer dir.Close() // read only
	name, err := robotfs.Model(dir)
	if err != nil {
		return control.Model{}, err
	}
	if name == "" {
		return s.Model()
	}
	m, err := s.Named(name)
	if err != nil {
		return control.Model{}, err
	}
	if m.Control == nil {
		return s.Model()
	}
	return m.Control()
}

// Memory has the methods of parameters.Memory in the agent.
type Memory interface {
	Document() (jdocs.Name, map[string]json.RawMessage)
	Check(parameter string, v json.RawMessage) (json.RawMessage, error)
	Store(ctx context.Context, values map[string]json.RawMessage) (map[string]json.RawMessage, error)
}

// Host has what robotd lends to the species of its body. Its functions are safe for concurrent use.
type Host struct {
	Log     *slog.Logger
	Root    string // the robot's folder
	Device  string // the body's port
	Publish func(corelink.Message) error
	Busy    func(patience time.Duration)               // the attempt to open works, and says so again before patience is over
	Note    func(ctx context.Context, firmware uint16) // the status of the firmware, for programs that start later; 0: it is as it should be
}

// Opening says how robotd opens one body, and which services run beside it.
type Opening struct {
	Open     func(context.Context) (b body.Body, unwell, err error) // unwell: it is open, and not as it should be
	Before   []startup.Stage                                        // before anything runs
	Services []runner.Service
}

// maxWords bounds an error's text in a message, in bytes.
const maxWords = 1000

// Words returns an error as a message of corelink carries it: valid UTF-8, cut between two letters.
func Words(err error) string {
	s := strings.ToValidUTF8(err.Error(), "?")
	for len(s) > maxWords {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
