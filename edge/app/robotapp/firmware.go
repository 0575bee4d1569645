package robotapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector"
	"kennel/edge/corelink"
	"kennel/edge/faultcode"
	"kennel/infra/logging"
)

// updatePatience is the longest time between two progress messages of a working update: the boot-loader is asked three times to erase.
const updatePatience = 16 * time.Second

// unusable is the status of a file that cannot be used. The published table has nothing for it; nothing of it can be sent (own choice).
const unusable faultcode.Code = 18

// firmware is the wanted program of the body's own processor. It is read before the services start; then it belongs to the goroutine of core.run.
type firmware struct {
	path  string
	want  *vector.Firmware // nil: any program will do
	spent bool             // all attempts failed and the body runs its old program: the update is not tried again at each opening
}

// due returns the firmware to open the body with.
func (f *firmware) due() *vector.Firmware {
	if f.spent {
		return nil
	}
	return f.want
}

// firmwareFile is where the file is.
func (c Config) firmwareFile() string {
	if c.Firmware != "" {
		return c.Firmware
	}
	return filepath.Join(c.Root, filepath.FromSlash(vectorFirmware))
}

// shown returns a path as other programs see it: relative to the root if it is below it.
func (c Config) shown(path string) string {
	if rel, err := filepath.Rel(c.Root, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	return strings.ToValidUTF8(path, "?")
}

// readFirmware reads the file, once per start. Without a file the body keeps its program; an unusable file is reported like a failed update.
func (v *vectorBody) readFirmware(ctx context.Context) error {
	v.firm = firmware{path: v.cfg.firmwareFile()}
	b, err := readAtMost(v.firm.path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) && v.cfg.Firmware == "" {
		v.log.DebugContext(ctx, "no firmware file; body keeps its program", "file", v.firm.path)
		return nil
	}
	if err == nil {
		v.firm.want, err = vector.ParseFirmware(b)
	}
	if err != nil {
		v.log.ErrorContext(ctx, "firmware file unusable; body keeps its program", "file", v.firm.path, logging.Err, err)
		v.tellFirmware(ctx, corelink.Firmware{Status: uint16(unusable), Error: words(err)})
	}
	return err
}

// readAtMost reads a file of at most most bytes.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return b, err
}

// progress returns the callback of an update: it logs each phase and each tenth of the program, and tells the watchdog that the update is
// working, so that it is not mistaken for an attempt to open that hangs.
func (v *vectorBody) progress(ctx context.Context) func(vector.Progress) {
	phase, tenth := vector.Phase(math.MaxUint8), 0
	return func(p vector.Progress) {
		v.opening.Store(int64(v.now() + updatePatience))
		if p.Phase != phase {
			if phase = p.Phase; p.Done == 0 {
				tenth = 0
			}
			v.log.InfoContext(ctx, "body firmware update", "phase", p.Phase.String(), "attempt", p.Attempt)
		}
		if n := 10 * p.Done / max(p.Total, 1); n > tenth { // the last block is done when the next phase begins
			tenth = n
			v.log.InfoContext(ctx, "body firmware update", "percent", 10*n, "blocks", p.Done, "of", p.Total)
		}
	}
}

// updated takes the outcome of the firmware check when the body was opened, or failed to open.
func (v *vectorBody) updated(ctx context.Context, u vector.Update, err error) {
	switch {
	case err != nil:
		v.firm.spent = false // an update can help a body without a program
	case u.Err != nil:
		v.firm.spent = true
	}
	if u.Wanted == "" {
		return // nothing was looked at
	}
	m := corelink.Firmware{
		Wanted: u.Wanted, Installed: u.Installed, Skipped: u.Skipped, Attempts: uint8(u.Attempts),
		TookMS: uint32(u.Took.Milliseconds()),
	}
	level, what := slog.LevelInfo, "body firmware installed"
	if u.Skipped != "" {
		what = "body firmware kept"
	}
	var ue *vector.UpdateError
	if errors.As(u.Err, &ue) {
		m.Status, m.Attempts, m.Error = uint16(ue.Status), uint8(ue.Attempt), words(ue)
		level, what = slog.LevelError, "body firmware update failed"
	}
	v.log.Log(ctx, level, what, "wanted", m.Wanted, "installed", m.Installed, "skipped", m.Skipped, "attempts", m.Attempts, "status", m.Status,
		logging.Err, u.Err)
	v.tellFirmware(ctx, m)
}

// tellFirmware tells peers, and writes the status to the file where programs that start later look for it; it removes the file of an earlier start.
func (v *vectorBody) tellFirmware(ctx context.Context, m corelink.Firmware) {
	m.AtUS, m.File = monoclock.Now().Microseconds(), v.cfg.shown(v.firm.path)
	if err := v.srv.Publish(&m); err != nil {
		v.log.ErrorContext(ctx, "publish", logging.Err, err) // a bug of ours: values are made to fit
	}
	v.noteStart(ctx, func(n *startNote) { n.status = m.Status })
}

// words is an error as a message carries it.
func words(err error) string {
	s := strings.ToValidUTF8(err.Error(), "?")
	for len(s) > maxWords {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// maxWords bounds an error's text.
const maxWords = 1000
