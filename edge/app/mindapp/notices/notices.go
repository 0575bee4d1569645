// Package notices says what a robot shows instead of its eyes by itself: its start, the code that its future owner types, updates and faults, each from the robot's files.
package notices

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/face/screen"
	"kennel/edge/faultcode"
	"kennel/edge/mind"
	"kennel/edge/update"
	"kennel/edge/update/disk"
	"kennel/infra/logging"
)

// Of returns what the robot in a folder shows instead of its eyes, the most urgent first: the number of its fault (VEC-FLT-10), the code that its future owner types, and how far an
// update is.
// Nothing but a fault brings its number up (VEC-DGN-03).
func Of(root *os.Root, getenv func(string) string) []mind.Notice {
	read := func(name string) string {
		b, err := robotfs.ReadFile(root, name)
		if err != nil {
			return "" // nothing is shown
		}
		return strings.TrimSpace(string(b))
	}
	return []mind.Notice{
		func() screen.Screen {
			code, err := faults.Parse([]byte(read(faults.ShowingFile)))
			if err != nil || code == 0 {
				return nil
			}
			handler, _ := platform.LoadFaultHandler(root, getenv) // of a damaged file what can be read
			return screen.Fault{Code: code.String(), Words: code.Text(), Restarts: handler.Restart && code.Stops() != faultcode.NoService}
		},
		func() screen.Screen {
			code := read(claim.CodeFile)
			if code == "" {
				return nil
			}
			return screen.Pairing{Code: code}
		},
		func() screen.Screen {
			s, err := update.ReadStatus(disk.Of(root))
			if err != nil || !s.Runs() || s.Expected <= 0 {
				return nil
			}
			return screen.Update{Done: s.Progress, Of: s.Expected, Version: string(s.Version)}
		},
	}
}

// bootFor is how long the start is shown, which the pages before go before; own default: its eyes are open then.
const bootFor = 3 * time.Second

// filmFile is the film that original robots show while they start.
const filmFile = robotfs.Resources + "/config/engine/animations/boot_anim.raw"

// Boot is shown while the robot's character starts: the robot's own film (part of VEC-DSP-03), or Kennel's. A film that is not one is logged.
func Boot(root *os.Root, log *slog.Logger, now func() time.Duration) mind.Notice {
	var page screen.Screen = screen.Boot{}
	film, err := readFilm(root)
	switch {
	case err == nil:
		page = film
	case !errors.Is(err, fs.ErrNotExist):
		log.Warn("film of the start not shown", logging.Err, err)
	}
	end := now() + bootFor
	return func() screen.Screen {
		if now() >= end {
			page = nil // a film is large
		}
		return page
	}
}

func readFilm(root *os.Root) (*screen.Film, error) {
	f, err := root.Open(filmFile)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, screen.MaxFilm+1))
	if err != nil {
		return nil, err
	}
	film, err := screen.ParseFilm(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filmFile, err)
	}
	return film, nil
}
