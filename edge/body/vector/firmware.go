package vector

import (
	"cmp"
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

	"kennel/edge/body/monoclock"
	"kennel/edge/body/species"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/infra/logging"
)

// usualFirmware is where the program of the body's processor is, below the root; the source names the file and not its folder: own default.
const usualFirmware = "anki/etc/syscon.dfu"

// updatePatience is the longest time between two progress messages of a working update: the boot-loader is asked three times to erase.
const updatePatience = 16 * time.Second

// unusable is the status of a file that cannot be used. The published table has nothing for it; nothing of it can be sent (own choice).
const unusable faultcode.Code = 18

// firmware is the wanted program of the body's own processor. It is read before the services start; then it belongs to the goroutine of core.run.
type firmware struct {
	path  string
	want  *vectordriver.Firmware // nil: any program will do
	spent bool                   // all attempts failed and the body runs its old program: the update is not tried again at each opening
}

// due returns the firmware to open the body with.
func (f *firmware) due() *vectordriver.Firmware {
	if f.spent {
		return nil
	}
	return f.want
}

// shown returns a path as other programs see it: relative to the root if it is below it.
func shown(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	return strings.ToValidUTF8(path, "?")
}

// readFirmware reads the file, once per start. Without a file the body keeps its program; an unusable file is reported like a failed update.
func (v *parts) readFirmware(ctx context.Context) error {
	v.firm = firmware{path: cmp.Or(v.flags.firmware, filepath.Join(v.Root, filepath.FromSlash(usualFirmware)))}
	b, err := readAtMost(v.firm.path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) && v.flags.firmware == "" {
		v.Log.DebugContext(ctx, "no firmware file; body's firmware kept", "file", v.firm.path)
		return nil
	}
	if err == nil {
		v.firm.want, err = vectordriver.ParseFirmware(b)
	}
	if err != nil {
		v.Log.ErrorContext(ctx, "firmware file unusable; body's firmware kept", "file", v.firm.path, logging.Err, err)
		v.tellFirmware(ctx, corelink.Firmware{Status: uint16(unusable), Error: species.Words(err)})
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
func (v *parts) progress(ctx context.Context) func(vectordriver.Progress) {
	phase, tenth := vectordriver.Phase(math.MaxUint8), 0
	return func(p vectordriver.Progress) {
		v.Busy(updatePatience)
		if p.Phase != phase {
			if phase = p.Phase; p.Done == 0 {
				tenth = 0
			}
			v.Log.InfoContext(ctx, "body firmware update", "phase", p.Phase.String(), "attempt", p.Attempt)
		}
		if n := 10 * p.Done / max(p.Total, 1); n > tenth { // the last block is done when the next phase begins
			tenth = n
			v.Log.InfoContext(ctx, "body firmware update", "percent", 10*n, "blocks", p.Done, "of", p.Total)
		}
	}
}

// updated takes the outcome of the firmware check when the body was opened, or failed to open.
func (v *parts) updated(ctx context.Context, u vectordriver.Update, err error) {
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
	var ue *vectordriver.UpdateError
	if errors.As(u.Err, &ue) {
		m.Status, m.Attempts, m.Error = uint16(ue.Status), uint8(ue.Attempt), species.Words(ue)
		level, what = slog.LevelError, "body firmware update failed"
	}
	v.Log.Log(ctx, level, what, "wanted", m.Wanted, "installed", m.Installed, "skipped", m.Skipped, "attempts", m.Attempts, "status", m.Status,
		logging.Err, u.Err)
	v.tellFirmware(ctx, m)
}

// tellFirmware tells peers, and writes the status to the file where programs that start later look for it; it removes the file of an earlier start.
func (v *parts) tellFirmware(ctx context.Context, m corelink.Firmware) {
	m.AtUS, m.File = monoclock.Now().Microseconds(), shown(v.Root, v.firm.path)
	if err := v.Publish(&m); err != nil {
		v.Log.ErrorContext(ctx, "publish", logging.Err, err) // a bug of ours: values are made to fit
	}
	v.Note(ctx, m.Status)
}
