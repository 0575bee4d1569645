package emr

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"kennel/infra/atomicfile"
)

// Errors of Write.
var (
	ErrReleased = errors.New("the robot has left the factory: its record is read-only")
	ErrNotFAC   = errors.New("not in factory mode: this build does not permit it")
)

// Read reads the record of the robot below root. fs.ErrNotExist is in the error's chain if there is none.
func Read(root *os.Root) (Record, error) {
	f, err := root.Open(Path)
	if err != nil {
		return Record{}, err
	}
	defer f.Close() // read only
	b := make([]byte, Size)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return Record{}, fmt.Errorf("read %s: %w", Path, err)
	}
	r, err := Parse(b[:n])
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", Path, err)
	}
	return r, nil
}

// FactoryMode reports whether a robot with this record is in FAC mode: it was not released, and its build permits the mode (part of VEC-STOR-05).
// A build for owners does not: a damaged record must not put an owner's robot into factory mode.
func FactoryMode(r Record, permitted bool) bool { return permitted && r.Factory() }

// Write writes the record, as a factory does before it packs the robot (VEC-STOR-02). permitted says that the build has a factory mode; a
// robot whose stored record is released is refused, whatever the new one says. It returns when the record is on disk. The flags of
// packing are written last, so a kill can leave a robot unreleased, but never release it wrongly.
func Write(root *os.Root, r Record, permitted bool) error {
	if !permitted {
		return ErrNotFAC
	}
	old, err := Read(root)
	switch {
	case err == nil && !old.Factory():
		return fmt.Errorf("%s: %w", Path, ErrReleased)
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return atomicfile.Write(root, Path, r.Append(nil), 0o444, 0o755)
	}
	// A record that cannot be parsed is one that a factory has not finished. The partition keeps its place and what follows the record.
	info, err := root.Stat(Path)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		return replace(root, info, r)
	}
	f, err := root.OpenFile(Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	unpacked := r
	unpacked.PackedOut, unpacked.PackedOutDate = 0, 0
	for _, rec := range []Record{unpacked, r} {
		if _, err = f.WriteAt(rec.Append(nil), 0); err == nil {
			err = f.Sync()
		}
		if err != nil {
			_ = f.Close() // the first error is reported
			return fmt.Errorf("write %s: %w", Path, err)
		}
	}
	return f.Close()
}

// replace rewrites a file that holds a record, and keeps the bytes behind it.
func replace(root *os.Root, info fs.FileInfo, r Record) error {
	const partition = 16 << 20
	if info.Size() > partition {
		return fmt.Errorf("%s has %d bytes: want at most %d", Path, info.Size(), partition)
	}
	b, err := root.ReadFile(Path)
	if err != nil {
		return err
	}
	out := r.Append(nil)
	if len(b) > Size {
		out = append(out, b[Size:]...)
	}
	return atomicfile.Write(root, Path, out, info.Mode().Perm(), 0o755)
}

// Stage returns the text that the display shows in FAC mode, on a red background (part of VEC-STOR-05): "FAC", or the number of the next step.
// Which numbers the original shows is not known; ours are 1 for the fixtures, 2 for the playpen, 3 for packing.
func (r Record) Stage() string {
	switch {
	case !r.Factory():
		return ""
	case r.PlaypenReady == 0:
		return "FAC 01"
	case r.PlaypenPassed == 0:
		return "FAC 02"
	}
	return "FAC 03"
}

// FactoryLights are the three lights on the back in FAC mode, front to back, as red, green, blue.
var FactoryLights = [3][3]uint8{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}}

// Dump writes the record for people, one line per field. Words of the three arrays are listed if they are not zero.
func (r Record) Dump(w io.Writer) error {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-16s %s\n", name, value) }
	line("serial", r.Serial())
	line("hardware", fmt.Sprint(r.HardwareRev))
	line("model", fmt.Sprint(r.Model))
	lot := fmt.Sprint(r.LotCode)
	if l, ok := ParseLot(r.LotCode); ok {
		lot = fmt.Sprintf("%s (raw %d): factory %d, week %d of %d, variant %d", l, r.LotCode, l.Factory, l.Week, l.Year, l.Variant)
	}
	line("lot", lot)
	line("playpen ready", fmt.Sprint(r.PlaypenReady))
	line("playpen passed", fmt.Sprint(r.PlaypenPassed))
	packed := fmt.Sprint(r.PackedOut)
	if t := r.Released(); !t.IsZero() {
		packed += ", " + t.Format("2006-01-02 15:04:05 UTC")
	}
	line("packed out", packed)
	if s := r.Stage(); s != "" {
		line("stage", s)
	}
	for _, a := range []struct {
		name  string
		words []uint32
	}{{"reserved", r.Reserved[:]}, {"playpen", r.Playpen[:]}, {"fixture", r.Fixture[:]}} {
		for i, v := range a.words {
			if v != 0 {
				line(fmt.Sprintf("%s[%d]", a.name, i), fmt.Sprintf("%#08x", v))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
