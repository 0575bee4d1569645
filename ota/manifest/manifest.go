package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kennel/ota"
)

// Bounds of a manifest: of the file, and of one image without compression.
const (
	MaxSize  = 16 << 10
	MaxImage = 8 << 30
)

// Formats are the values of manifest_version, the oldest first (VEC-OTA-03). How they differ is not known; all are read alike.
var Formats = []string{"0.9.2", "0.9.3", "0.9.4", "0.9.5", "1.0.0"}

// Kind is the kind of an update, which follows from its images.
type Kind string

// The kinds (VEC-OTA-02).
const (
	Production Kind = "production"
	Factory    Kind = "factory"
	Delta      Kind = "delta"
)

// Part is a partition of the robot that an image is for; Changes is for several.
type Part string

// The parts, spelled as the manifest's sections.
const (
	Boot       Part = "BOOT"
	System     Part = "SYSTEM"
	ABoot      Part = "ABOOT"
	Recovery   Part = "RECOVERY"
	RecoveryFS Part = "RECOVERYFS"
	Changes    Part = "DELTA"
)

// kinds holds the parts of each kind in the order of their files in the archive.
var kinds = map[Kind][]Part{Production: {Boot, System}, Factory: {ABoot, Recovery, RecoveryFS}, Delta: {Changes}}

var files = map[Part]string{
	Changes: "apq8009-robot-delta.bin.gz", ABoot: "apq8009-robot-emmc_appsboot.img.gz",
	Boot: "apq8009-robot-boot.img.gz", Recovery: "apq8009-robot-boot.img.gz",
	System: "apq8009-robot-sysfs.img.gz", RecoveryFS: "apq8009-robot-sysfs.img.gz",
}

// Parts returns the parts of a kind in the order of their files in the archive; nil for an unknown kind.
func (k Kind) Parts() []Part { return slices.Clone(kinds[k]) }

// File returns the name of the part's file in the archive (VEC-OTA-01).
func (p Part) File() string { return files[p] }

// Sum is the SHA-256 of an image; as text it is in hex.
type Sum [sha256.Size]byte

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns s in hex.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the reverse.
func (s *Sum) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(s[:], b[:min(len(b), 2*len(s))]); err != nil || n != len(s) || len(b) != 2*len(s) {
		return fmt.Errorf("%.80q: want %d hexadecimal digits", b, 2*len(s))
	}
	return nil
}

// Image is one image section.
type Image struct {
	Part      Part        `json:"part"`
	Bytes     int64       `json:"bytes"` // of the image, neither compressed nor encrypted
	SHA256    Sum         `json:"sha256"`
	Encrypted bool        `json:"encrypted"`
	Base      ota.Version `json:"base_version,omitempty"` // of a delta: the version that it changes
}

// Manifest describes an update.
type Manifest struct {
	Format  string      `json:"manifest_version"`
	Version ota.Version `json:"update_version"`
	Dev     bool        `json:"ankidev"`
	QSN     string      `json:"qsn,omitempty"` // the only robot that the update is for, by its processor's serial number
	Reboot  bool        `json:"reboot_after_install"`
	Images  []Image     `json:"images"` // in the order of their files in the archive
}

// Kind returns the kind of the update; "" if the images are of no kind.
func (m *Manifest) Kind() Kind {
	for k, parts := range kinds {
		if slices.EqualFunc(parts, m.Images, func(p Part, i Image) bool { return p == i.Part }) {
			return k
		}
	}
	return ""
}

// Encode returns the manifest as a file. It returns the error of Parse if what it would write could not be read again.
func (m *Manifest) Encode() ([]byte, error) {
	bit := map[bool]int{true: 1}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[META]\nmanifest_version=%s\nupdate_version=%s\nankidev=%d\nnum_images=%d\nreboot_after_install=%d\n",
		m.Format, m.Version, bit[m.Dev], len(m.Images), bit[m.Reboot])
	if m.QSN != "" {
		fmt.Fprintf(&b, "qsn=%s\n", m.QSN)
	}
	for _, i := range m.Images {
		fmt.Fprintf(&b, "\n[%s]\nencryption=%d\ndelta=%d\ncompression=gz\nwbits=31\nbytes=%d\nsha256=%s\n",
			i.Part, bit[i.Encrypted], bit[i.Part == Changes], i.Bytes, i.SHA256)
		if i.Base != "" {
			fmt.Fprintf(&b, "base_version=%s\n", i.Base)
		}
	}
	_, err := Parse(b.Bytes())
	return b.Bytes(), err
}

// Parse reads a manifest. Each error has a code of an update.
func Parse(b []byte) (*Manifest, error) {
	sections, err := split(b)
	if err != nil {
		return nil, err
	}
	meta := sections["META"]
	if meta == nil {
		return nil, ota.Fail(ota.BadManifest, "manifest.ini: no section [META]")
	}
	delete(sections, "META")
	m := &Manifest{
		Format: meta.text("manifest_version", "one of "+strings.Join(Formats, ", "), func(s string) bool { return slices.Contains(Formats, s) }),
		Dev:    meta.number("ankidev", "0", 0, 1) == 1,
		Reboot: meta.number("reboot_after_install", "0", 0, 1) == 1,
	}
	if meta.keys["qsn"].value != "" {
		m.QSN = meta.text("qsn", "up to 64 letters and digits", qsnPattern.MatchString)
	}
	images := meta.number("num_images", "", 1, 3)
	m.Version = meta.version("update_version", ota.WrongVersion)
	if meta.err != nil {
		return nil, meta.err
	}
	for _, parts := range kinds {
		if len(parts) != len(sections) || slices.ContainsFunc(parts, func(p Part) bool { return sections[p] == nil }) {
			continue
		}
		if images != int64(len(parts)) {
			return nil, meta.bad(ota.BadManifest, "num_images", fmt.Sprintf("%d, the number of image sections", len(parts)))
		}
		for _, p := range parts {
			i, err := sections[p].image(p)
			if err != nil {
				return nil, err
			}
			m.Images = append(m.Images, i)
		}
		return m, nil
	}
	names := make([]string, 0, len(sections))
	for name := range sections {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return nil, ota.Fail(ota.BadManifest, "manifest.ini: image sections %.200q: want DELTA, or BOOT and SYSTEM, or ABOOT, RECOVERY and RECOVERYFS", names)
}

var (
	sectionPattern = regexp.MustCompile(`^\[([A-Z]{1,16})\]$`)
	keyPattern     = regexp.MustCompile(`^([A-Za-z0-9_]{1,32})[ \t]*[=:][ \t]*(.*)$`)
	qsnPattern     = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)
)

// section is one section as text. The first fault in it is kept in err, so that its keys are read without a check after each.
type section struct {
	name Part // or META
	line int
	keys map[string]entry
	err  error
}

type entry struct {
	value string
	line  int
}

// split reads the lines.
func split(b []byte) (map[Part]*section, error) {
	if len(b) > MaxSize {
		return nil, ota.Fail(ota.BadManifest, "manifest.ini has %d bytes: want at most %d", len(b), MaxSize)
	}
	sections := map[Part]*section{}
	var now *section
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		bad := func(want string) error {
			return ota.Fail(ota.BadManifest, "manifest.ini, line %d: %.80q: want %s", n, strings.TrimSpace(text), want)
		}
		line := strings.TrimRight(text, " \t\r\n")
		switch {
		case line == "", line[0] == '#', line[0] == ';':
		case line[0] == '[':
			m := sectionPattern.FindStringSubmatch(line)
			if m == nil {
				return nil, bad("a section such as [META]")
			}
			if now = (&section{name: Part(m[1]), line: n, keys: map[string]entry{}}); sections[now.name] != nil {
				return nil, bad(fmt.Sprintf("each section once; it also starts in line %d", sections[now.name].line))
			}
			sections[now.name] = now
		default:
			m := keyPattern.FindStringSubmatch(line)
			if m == nil {
				return nil, bad("[SECTION], key=value or a comment, starting in the first column")
			}
			if now == nil {
				return nil, bad("a section before the first key")
			}
			key := strings.ToLower(m[1])
			if old, ok := now.keys[key]; ok {
				return nil, bad(fmt.Sprintf("each key once in a section; it is also in line %d", old.line))
			}
			now.keys[key] = entry{m[2], n}
		}
	}
	return sections, nil
}

// bad returns an error about one key.
func (s *section) bad(c ota.Code, key, want string) error {
	e, ok := s.keys[key]
	if !ok {
		return ota.Fail(c, "manifest.ini, line %d: [%s] has no %s: want %s", s.line, s.name, key, want)
	}
	return ota.Fail(c, "manifest.ini, line %d: %s=%.80s in [%s]: want %s", e.line, key, strconv.QuoteToGraphic(e.value), s.name, want)
}

// text returns the value of key, which must be good.
func (s *section) text(key, want string, good func(string) bool) string {
	v := s.keys[key].value
	if s.err == nil && !good(v) {
		s.err = s.bad(ota.BadManifest, key, want)
	}
	return v
}

// number returns the value of key, or of missing if it is not there.
func (s *section) number(key, missing string, low, high int64) int64 {
	v := missing
	if e, ok := s.keys[key]; ok {
		v = e.value
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if s.err == nil && (err != nil || n < low || n > high || strconv.FormatInt(n, 10) != v) {
		s.err = s.bad(ota.BadManifest, key, fmt.Sprintf("a number from %d to %d", low, high))
	}
	return n
}

// version returns the value of key, which must be a version; otherwise the update ends with code c.
func (s *section) version(key string, c ota.Code) ota.Version {
	v, err := ota.ParseVersion(s.keys[key].value)
	if s.err == nil && err != nil {
		s.err = s.bad(c, key, `four numbers with dots, then nothing, "d" or "ud"`)
	}
	return v
}

// image reads an image section.
func (s *section) image(p Part) (Image, error) {
	i := Image{Part: p}
	delta := int64(0)
	if p == Changes {
		delta = 1
		i.Base = s.version("base_version", ota.BadManifest)
	}
	i.Bytes = s.number("bytes", "", 1, MaxImage)
	s.text("sha256", "64 hexadecimal digits", func(v string) bool { return i.SHA256.UnmarshalText([]byte(v)) == nil })
	s.number("wbits", "31", 0, 47)
	s.number("delta", strconv.FormatInt(delta, 10), delta, delta)
	if s.err != nil {
		return i, s.err
	}
	switch e, ok := s.keys["encryption"]; {
	case e.value == "1":
		i.Encrypted = true
	case ok && e.value != "0":
		return i, s.bad(ota.BadEncryption, "encryption", "0 or 1")
	}
	if s.keys["compression"].value != "gz" {
		return i, s.bad(ota.BadCompression, "compression", "gz")
	}
	return i, nil
}
