// Package lastoff knows at a start whether the end before it was meant (VEC-PWR-42): a marker file is there from a clean shutdown until the next
// start. A brown-out, the battery's protection, a bug or a head that fell silent leave none, and the reason is then reported as unknown. The
// reason of a clean end is logged and broadcast at that end, and not stored (VEC-PWR-40): the marker says no more than that there was one.
package lastoff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"kennel/infra/atomicfile"
)

// File is the marker below the robot's root, on the medium that outlives power.
const File = "data/kennel/clean-shutdown"

// Last is how a robot went off before this start.
type Last uint8

// The ways. Unmeant is reported as power.UnknownCause.
const (
	Never   Last = iota // it was never on before, as far as its data goes
	Clean               // a person or a program decided it
	Unmeant             // without a decision
)

var names = [...]string{"never on before", "clean", "unmeant"}

func (l Last) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("last(%d)", uint8(l))
}

// content of the marker: that it is on, or that it went off cleanly.
const (
	on    = "on\n"
	clean = "clean\n"
)

// Started says how the robot went off before, and that it is on now. It is called once a start, before anything that could end it.
func Started(root *os.Root) (Last, error) {
	last := Unmeant
	b, err := root.ReadFile(File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		last = Never
	case err != nil:
		return 0, fmt.Errorf("read cause of the last shutdown: %w", err)
	case string(b) == clean:
		last = Clean
	} // anything else: a start that was not followed by a clean end, or a file damaged by one
	return last, write(root, on)
}

// GoingOff says that the robot is about to go off because something decided so. It is the last that is written before the body's power is cut
// (VEC-PWR-41).
func GoingOff(root *os.Root) error { return write(root, clean) }

func write(root *os.Root, what string) error {
	if err := atomicfile.CleanTemp(root, path.Dir(File)); err != nil {
		return fmt.Errorf("write cause of shutdown: %w", err)
	}
	if err := atomicfile.Write(root, File, []byte(what), 0o644, 0o755); err != nil {
		return fmt.Errorf("write cause of shutdown: %w", err)
	}
	return nil
}
