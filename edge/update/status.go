package update

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"kennel/edge/update/disk"
	"kennel/ota"
)

// Dir is the folder in which the updater says how far it is, for other programs of the robot (VEC-OTA-15). It is in memory.
const Dir = "run/update-engine/"

// The files in it.
const (
	doneFile      = Dir + "done" // an update is installed and waits for the reboot; there is no other until then
	errorFile     = Dir + "error"
	downloadFile  = Dir + "expected-download-size"
	sizeFile      = Dir + "expected-size"
	phaseFile     = Dir + "phase"
	progressFile  = Dir + "progress"
	manifestFile  = Dir + "manifest.ini"
	signatureFile = Dir + "manifest.sha256"
)

// wipeFile asks for the owner's data to be erased when the system goes down, as the original's does. A power cut forgets it; the slots' record does
// not (VEC-OTA-12).
const wipeFile = "run/wipe-data"

// unclean is in the error file until an update ended some way.
const unclean = "Unclean exit"

// Phase is how far an update is.
type Phase string

// The phases of the status folder.
const (
	Starting    Phase = "starting"
	Sleeping    Phase = "sleeping"
	Downloading Phase = "download"
	Finished    Phase = "done"
)

// board writes the status folder. A file is written only when it changes.
type board struct {
	disk disk.Disk
	said map[string]string
}

// clear empties the folder, but for the phase, and leaves the error of an update that did not end.
func (b *board) clear() error {
	b.said = map[string]string{}
	for _, name := range []string{doneFile, downloadFile, sizeFile, progressFile, manifestFile, signatureFile} {
		if err := b.disk.Remove(name); err != nil {
			return ota.Fail(ota.DiskFailed, "status folder: %w", err)
		}
	}
	return errors.Join(b.put(errorFile, unclean), b.put(phaseFile, string(Starting)))
}

// put writes a file of the folder in place: it is in memory, so there is nothing to sync.
func (b *board) put(name, text string) error {
	if old, ok := b.said[name]; ok && old == text {
		return nil
	}
	f, err := b.disk.Write(name)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(text), 0)
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return ota.Fail(ota.DiskFailed, "status %s: %w", name, err)
	}
	b.said[name] = text
	return nil
}

func (b *board) number(name string, n int64) error { return b.put(name, strconv.FormatInt(n, 10)) }

// Status is how far an update is, read from the folder.
type Status struct {
	Phase    Phase    `json:"phase,omitempty"` // "": there was none since the boot
	Code     ota.Code `json:"code,omitempty"`
	Error    string   `json:"error,omitempty"`
	Done     bool     `json:"done"`
	Expected int64    `json:"expected"` // bytes of the archive; 0: not known
	Progress int64    `json:"progress"` // of them
}

// ReadStatus reads the folder.
func ReadStatus(d disk.Disk) (Status, error) {
	var s Status
	var errs error
	read := func(name string) string {
		b, err := disk.Get(d, name, 4096)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, fmt.Errorf("status: %w", err))
		}
		return string(b)
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(read(name), 10, 64) // "" and what another program put there is 0
		return n
	}
	s.Phase, s.Expected, s.Progress = Phase(read(phaseFile)), number(downloadFile), number(progressFile)
	if _, err := disk.Get(d, doneFile, 4096); err == nil {
		s.Done = true
	}
	if s.Error = read(errorFile); s.Error != "" {
		if n, err := strconv.Atoi(s.Error); err == nil {
			s.Code = ota.Code(n)
			s.Error = s.Code.Words()
		}
	}
	return s, errs
}
