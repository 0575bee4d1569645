package update

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"kennel/edge/update/disk"
	"kennel/ota"
	"kennel/ota/manifest"
)

// Dir is the folder in which the updater says how far it is, for other programs of the robot (part of VEC-OTA-15). It is in memory.
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

// done says that a system waits for the reboot.
func (b *board) done() error { return errors.Join(b.disk.Remove(errorFile), b.put(doneFile, "")) }

// withdrawn says that none does any longer.
func (b *board) withdrawn() error {
	var err error
	for _, name := range []string{doneFile, downloadFile, sizeFile, progressFile, manifestFile, signatureFile} {
		err = errors.Join(err, b.disk.Remove(name))
	}
	return errors.Join(err, b.put(phaseFile, string(Sleeping)))
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
	Phase    Phase       `json:"phase,omitempty"` // "": there was none since the boot
	Version  ota.Version `json:"update_version,omitempty"`
	Code     ota.Code    `json:"code,omitempty"`
	Error    string      `json:"error,omitempty"`
	Done     bool        `json:"done"`
	Expected int64       `json:"expected"` // bytes of the archive; 0: not known
	Progress int64       `json:"progress"` // of them
}

// Runs reports whether an update is on its way.
func (s Status) Runs() bool { return s.Phase == Starting || s.Phase == Downloading }

// SDK is s in the numbers of the robot's API (part of VEC-UPD-01): 0 no update, 1 ready to install, 2 downloading, 3 interrupted, 4 starting, 6 failed.
// That there is no archive, or no newer one, is no failure for those who ask for the newest.
func (s Status) SDK() int {
	switch {
	case s.Done:
		return 1
	case s.Phase == Downloading:
		return 2
	case s.Phase == Starting:
		return 4
	case s.Error == "", s.Code == ota.BadURL, s.Code == ota.WrongVersion:
		return 0
	case s.Error == unclean, s.Code == ota.TimedOut:
		return 3
	}
	return 6
}

// BLE is s in the numbers that the robot sends over Bluetooth (VEC-MSG-16): 0 idle, 2 in progress, 3 complete, 5 ended uncleanly, 200 and above the
// code of the failure.
func (s Status) BLE() int {
	switch {
	case s.Done:
		return 3
	case s.Runs():
		return 2
	case s.Code != 0:
		return int(s.Code)
	case s.Error != "":
		return 5
	}
	return 0
}

// ReadStatus reads the folder.
func ReadStatus(d disk.Disk) (Status, error) {
	var s Status
	var errs error
	read := func(name string) string {
		b, err := disk.Get(d, name, manifest.MaxSize)
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
	if m, err := manifest.Parse([]byte(read(manifestFile))); err == nil { // a failed update leaves none
		s.Version = m.Version
	}
	if s.Error = read(errorFile); s.Error != "" {
		if n, err := strconv.Atoi(s.Error); err == nil {
			s.Code = ota.Code(n)
			s.Error = s.Code.Words()
		}
	}
	return s, errs
}
