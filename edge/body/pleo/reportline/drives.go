package reportline

import "strconv"

// Properties are the ids of the properties in a line of drives, in its order: arousal, valence, age, damage, energy, health, mood, command, fatigue, behavior
// and drive (part of PLEO-PRP-07).
var Properties = [...]uint8{1, 2, 4, 5, 6, 7, 8, 9, 16, 21, 30}

// Limits of a line of drives.
const (
	MaxDrives = 6  // Pleo may have more; the first ones are told
	MaxName   = 12 // bytes; the rest of a longer name is left out
)

// Drive is one of the motives that compete in Pleo (PLEO-DRV-01).
type Drive struct {
	Name      [MaxName]byte // of letters, digits, @ and _, zeros behind it
	Value     int32
	Low, High int32 // between them the drive is content
}

// Drives holds the fields of a line of drives.
type Drives struct {
	Properties [len(Properties)]int32
	Count      int
	Drives     [MaxDrives]Drive // the first Count; the others are zero
}

const startDrives = "drives "

// AppendDrives appends a line of drives without its end.
func AppendDrives(dst []byte, d *Drives) []byte {
	at := len(dst)
	dst = strconv.AppendInt(append(dst, startDrives...), version, 10)
	for _, v := range d.Properties {
		dst = strconv.AppendInt(append(dst, ' '), int64(v), 10)
	}
	dst = strconv.AppendInt(append(dst, ' '), int64(d.Count), 10)
	for i := range d.Drives[:d.Count] {
		x := &d.Drives[i]
		dst = append(dst, ' ')
		for _, c := range x.Name {
			if c != 0 {
				dst = append(dst, c)
			}
		}
		for _, v := range [...]int32{x.Value, x.Low, x.High} {
			dst = strconv.AppendInt(append(dst, ' '), int64(v), 10)
		}
	}
	return end(dst, at)
}

// IsDrives reports whether a line of the monitor is meant to be a line of drives.
func IsDrives(line []byte) bool {
	return len(line) >= len(startDrives) && string(line[:len(startDrives)]) == startDrives
}

// ParseDrives reads a line, without its end, into d, which is unchanged after an error. It allocates nothing but errors.
func ParseDrives(line []byte, d *Drives) error {
	f, err := begin(line, startDrives)
	if err != nil {
		return err
	}
	const least, most = -1 << 31, 1<<31 - 1
	var out Drives
	for i := range out.Properties {
		out.Properties[i] = int32(f.next("property", least, most))
	}
	out.Count = int(f.next("number of drives", 0, MaxDrives))
	for i := range out.Drives[:out.Count] {
		x := &out.Drives[i]
		f.name(&x.Name)
		x.Value = int32(f.next("value of a drive", least, most))
		x.Low = int32(f.next("low trigger", least, most))
		x.High = int32(f.next("high trigger", least, most))
	}
	if err := f.end(); err != nil {
		return err
	}
	*d = out
	return nil
}

// name reads a name and the space behind it.
func (f *fields) name(out *[MaxName]byte) {
	if f.err != nil {
		return
	}
	rest := f.line[f.at:]
	n := 0
	for n < len(rest) && Letter(rest[n]) {
		n++
	}
	if n == 0 || n > MaxName || n == len(rest) || rest[n] != ' ' {
		f.fail("name of a drive", "1 to 12 letters, digits, @ or _ and a space", string(rest[:min(len(rest), 20)]))
		return
	}
	copy(out[:], rest[:n])
	f.at += n + 1
}

// Letter reports whether c may be in the name of a drive.
func Letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '@' || c == '_'
}
