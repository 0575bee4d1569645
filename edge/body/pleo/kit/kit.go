// Package kit builds applications for Pleo: it turns a project of sounds, motions, commands and scripts into the one file (URF) for Pleo's card, and takes such
// files apart. It is the development kit of the programming guide in one program, with its own include files and compiler (part of PLEO-PDK-01).
//
// A build reads what the project names, wherever it is, and writes inside the folder of the project only.
package kit

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
)

//go:embed include
var includes embed.FS

// Capacity is how many bytes of a bundle Pleo's storage holds: 6,912 pages of 528 (PLEO-BLD-14).
const Capacity = 6912 * 528

// maxFile bounds the files that are read, in bytes.
const maxFile = 64 << 20

// maxOfKind is how many resources of a kind have an id (PLEO-BLD-05), and maxProperties how many properties an application can add to Pleo's own.
const (
	maxOfKind     = 0x1000
	maxProperties = 187
)

// Options say how a project is built.
type Options struct {
	Log     io.Writer         // gets the log, in the words of the original tool (PLEO-BLD-10)
	Clean   bool              // remove what an earlier build made before
	Only    bool              // with Clean: do nothing else
	Profile *lifeos.Profile   // generation of the firmware; nil: as the project says
	Debug   bool              // compile scripts with symbols, whatever the project says
	Defines map[string]string // values of macros from the command line
	Getenv  func(string) string
	Now     func() time.Time // time of the build; nil: the clock
}

// Result is a finished build.
type Result struct {
	Project  string            `json:"project"` // file of the project
	File     string            `json:"file,omitempty"`
	Profile  string            `json:"profile"` // 1.1 or 1.0
	Bytes    int               `json:"bytes"`
	Free     int               `json:"free_bytes"` // of the card
	Sum      uint32            `json:"adler"`
	IDs      map[string]uint16 `json:"ids"` // by the names that scripts use
	Warnings []string          `json:"warnings,omitempty"`
}

// Error lists the mistakes of a project, each with its file, and with line and column where they are known.
type Error struct {
	Problems []string
}

func (e *Error) Error() string {
	if n := len(e.Problems); n > 1 {
		return fmt.Sprintf("%s (and %d more)", e.Problems[0], n-1)
	}
	return e.Problems[0]
}

// builder is one build.
type builder struct {
	Options
	dir     string   // of the project
	root    *os.Root // likewise, for what is written
	p       *format.Project
	expand  func(string) (string, error)
	command string // of the compiler
	profile lifeos.Profile
	build   string // folders, inside dir
	made    string
	temp    string
	parts   [][]part // by kind, in the order of the project
	names   map[string]*part
	result  *Result
	began   time.Time
}

// part is a resource of the project.
type part struct {
	format.Source
	file string // where it is, as the log shows it
	base string // its name: the file's, without its end
	id   uint16
	word string // its name in scripts
	out  string // file of the result in the temp folder
	data []byte
}

// Build builds the project in a file, or in a folder with one project file. An *Error lists the mistakes of the project.
func Build(name string, o Options) (*Result, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	file, err := Find(name)
	if err != nil {
		return nil, err
	}
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	b := &builder{Options: o, dir: filepath.Dir(file), names: map[string]*part{}, result: &Result{Project: file, IDs: map[string]uint16{}}, began: o.Now()}
	if b.p, err = format.ReadProject(text); err != nil {
		return nil, &Error{[]string{file + ": " + err.Error()}}
	}
	for _, u := range b.p.Unknown {
		b.warn("%s: %v; ignored", file, u)
	}
	if b.root, err = os.OpenRoot(b.dir); err != nil {
		return nil, err
	}
	defer b.root.Close() // nothing is open
	if err := b.prepare(); err != nil {
		return nil, err
	}
	if b.Clean {
		if err := b.clean(); err != nil {
			return nil, err
		}
		if b.Only {
			return b.result, nil
		}
	}
	b.startups()
	for _, step := range []func() error{b.enumerate, b.process, b.write} {
		if err := step(); err != nil {
			return b.result, err
		}
	}
	return b.result, nil
}

// Find returns the project file that a name means: the file itself, or the one of a folder (part of PLEO-PRJ-07).
func Find(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return name, err
	}
	found, err := filepath.Glob(filepath.Join(name, "*.upf"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &Error{[]string{fmt.Sprintf("%s: %d project files, want one *.upf; name the file", name, len(found))}}
	}
	return found[0], nil
}

// read reads a file of at most maxFile bytes.
func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: want a file of at most %d bytes", name, maxFile)
	}
	return b, err
}

func (b *builder) warn(form string, args ...any) {
	b.result.Warnings = append(b.result.Warnings, fmt.Sprintf(form, args...))
}

func (b *builder) logf(form string, args ...any) { fmt.Fprintf(b.Log, form+"\n", args...) }

// prepare resolves folders and resources.
func (b *builder) prepare() error {
	b.expand = b.p.Expander(func(name string) (string, bool) {
		if v, ok := b.Defines[name]; ok {
			return v, true
		}
		if b.Getenv != nil {
			if v := b.Getenv(name); v != "" {
				return v, true
			}
		}
		return installed, name == "pdk" || name == "sdk"
	})
	var bad Error
	fail := func(line int, err error) {
		at := b.result.Project
		if line > 0 {
			at = fmt.Sprintf("%s(%d)", at, line)
		}
		bad.Problems = append(bad.Problems, at+": "+err.Error())
	}
	for what, to := range map[string]*string{b.p.Build: &b.build, b.p.Generated: &b.made, b.p.Temp: &b.temp} {
		v, err := b.expand(what)
		v = slashed(v)
		if err == nil && (!filepath.IsLocal(v) || v == ".") {
			err = fmt.Errorf("folder %.80q: want one inside the folder of the project", v)
		}
		if err != nil {
			fail(0, err)
		}
		*to = v
	}
	if err := b.chooseProfile(); err != nil {
		fail(0, fmt.Errorf("command of the compiler: %w", err))
	}
	if v, err := b.expand(b.p.UMF); err != nil {
		fail(0, err)
	} else if v != "" && v != "3" {
		fail(0, fmt.Errorf("motions of version %.20q: want 3, the only one that Pleo reads", v))
	}
	b.parts = make([][]part, format.Properties+1)
	for _, s := range b.p.Resources {
		p := part{Source: s}
		file, err := b.expand(s.Path)
		if err != nil {
			fail(s.Line, err)
			continue
		}
		p.file = slashed(file)
		if p.base = path.Base(p.file); s.Kind != format.Properties {
			p.base = strings.TrimSuffix(p.base, path.Ext(p.base))
		}
		if err := b.add(p); err != nil {
			fail(s.Line, err)
		}
	}
	if len(bad.Problems) > 0 {
		slices.Sort(bad.Problems)
		return &bad
	}
	return nil
}

// chooseProfile finds out for which firmware the project is: Options say it, or else the command of its compiler.
func (b *builder) chooseProfile() (err error) {
	if b.command, err = b.expand(cmp.Or(b.p.Compiler, DefaultCompiler)); err != nil {
		return err
	}
	if b.profile, err = profileOf(b.command); b.Profile != nil {
		b.profile, err = *b.Profile, nil
	}
	b.result.Profile = b.profile.String()
	return err
}

// slashed returns a path in the form that all systems read (PLEO-PDK-06).
func slashed(p string) string { return path.Clean(strings.ReplaceAll(p, `\`, "/")) }

// add takes a resource into the project.
func (b *builder) add(p part) error {
	if len(p.base) > format.MaxName {
		b.warn("%s: name is cut to %d bytes", p.file, format.MaxName) // PLEO-SBT-07
		p.base = p.base[:format.MaxName]
	}
	list := &b.parts[p.Kind]
	limit := maxOfKind
	if p.Kind == format.Properties {
		limit = maxProperties
	}
	if len(*list) >= limit {
		return fmt.Errorf("more than %d %s", limit, p.Kind)
	}
	p.word = enumerations[p.Kind].prefix + identifier(p.base)
	if other := b.names[p.word]; other != nil {
		return fmt.Errorf("%s and %s are both %s in scripts; rename one", other.file, p.file, p.word)
	}
	for _, dir := range []string{b.build, b.temp} {
		if p.Kind != format.Properties && strings.HasPrefix(p.file, dir+"/") {
			return fmt.Errorf("%s is in the folder %s, which a build removes", p.file, dir)
		}
	}
	*list = append(*list, p)
	b.names[p.word] = &p
	return nil
}

// startups warns of a startup script that only the other firmware runs (PLEO-VM-15).
func (b *builder) startups() {
	other := lifeos.Profile10
	if b.profile == other {
		other = lifeos.Profile11
	}
	wrong, right := enumerations[format.Scripts].prefix+other.Startup(), enumerations[format.Scripts].prefix+b.profile.Startup()
	if p := b.names[wrong]; p != nil && b.names[right] == nil {
		b.warn("%s: firmware %s runs %s first, and not this script; rename it", p.file, b.profile, b.profile.Startup())
	}
}

// identifier returns a name as Pawn allows it: other characters become _ (PLEO-BLD-06).
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// clean removes what builds made (PLEO-BLD-02).
func (b *builder) clean() error {
	b.logf("*** Cleaning ***")
	for _, e := range enumerations {
		for _, end := range []string{".inc", ".xml"} {
			name := b.made + "/" + e.name + end
			switch err := b.root.Remove(name); {
			case err == nil:
				b.logf("  Removing %s", name)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
	}
	b.logf("  Complete Clean: Removing build directory '%s'", b.build)
	for _, dir := range []string{b.temp, b.build} {
		if err := b.root.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// save writes a file of the project.
func (b *builder) save(name string, data []byte) error {
	if err := b.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	return b.root.WriteFile(name, data, 0o666)
}

// ends are the extensions of finished resources, which are packed as they are.
var ends = [...]string{format.Sounds: ".usf", format.Motions: ".umf", format.Commands: ".ucf", format.Scripts: ".amx"}

// process makes the resources in the order of their kinds (PLEO-BLD-08).
func (b *builder) process() error {
	b.logf("*** Processing ***")
	var bad Error
	for kind := range format.Properties {
		for i := range b.parts[kind] {
			p := &b.parts[kind][i]
			p.out = path.Join(b.temp, kind.String(), p.base+ends[kind])
			err := b.make(p)
			if err == nil {
				err = b.save(p.out, p.data)
			}
			var known *Error
			if errors.As(err, &known) {
				bad.Problems = append(bad.Problems, known.Problems...)
			} else if err != nil {
				bad.Problems = append(bad.Problems, p.file+": "+err.Error())
			}
		}
	}
	if len(bad.Problems) > 0 {
		return &bad
	}
	return nil
}

// make makes the data of a resource.
func (b *builder) make(p *part) error {
	text, err := read(b.path(p.file))
	if err != nil {
		return err
	}
	if strings.EqualFold(path.Ext(p.file), ends[p.Kind]) {
		b.logf("  Packing %s", p.file)
		p.data = text
		if p.Kind == format.Scripts {
			if err := b.fits(text); err != nil {
				return err
			}
		}
		return check(p.Kind, text)
	}
	switch p.Kind {
	case format.Sounds:
		o, err := b.p.SoundOptions(p.Source)
		if err != nil {
			return err
		}
		if o.Rate > format.AdvisedRate {
			b.warn("%s: %d samples a second; Pleo is known to play up to %d", p.file, o.Rate, format.AdvisedRate)
		}
		s, err := format.Convert(p.base, text, o)
		if err != nil {
			return err
		}
		adpcm := 0
		if o.ADPCM {
			adpcm = 1
		}
		b.logf("  Converting %s to %s adpcm:%d pitch:1 freq:%d", p.file, p.out, adpcm, o.Rate)
		p.data, err = s.Append(nil)
		return err
	case format.Motions:
		c, err := format.ReadMotionCSV(text)
		if err != nil {
			return err
		}
		m, err := c.Motion(p.base, b.cue)
		if err != nil {
			return err
		}
		b.logf("  Converting %s to %s, UMF3 format", p.file, p.out)
		length := 0
		for _, v := range m.Vectors {
			if v.Joint != format.SoundChannel {
				length += int(v.Goal-v.Start) + 1
			}
		}
		b.logf("done writing umf3 file; average vector length=%d, count=%d; frames=%d", length/max(len(m.Vectors), 1), len(m.Vectors), c.Frames) // PLEO-MBT-07
		p.data, err = m.Append(nil)
		return err
	case format.Commands:
		c, err := format.ReadCommandCSV(p.base, text, format.Names{Property: b.property, Resource: b.resource})
		if err != nil {
			return err
		}
		b.logf("  Converting %s to %s", p.file, p.out)
		p.data, err = c.Append(nil)
		return err
	}
	return b.compile(p, text)
}

// path returns where a file is that the project names.
func (b *builder) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.dir, filepath.FromSlash(name))
}

func (b *builder) cue(name string) (uint16, bool) {
	for _, kind := range []format.ResourceKind{format.Sounds, format.Commands} {
		if id := b.resource(kind, name); id != 0 {
			return id, true
		}
	}
	return 0, false
}

func (b *builder) resource(kind format.ResourceKind, name string) uint16 {
	for _, p := range b.parts[kind] {
		if p.base == name {
			return p.id
		}
	}
	return 0
}

func (b *builder) property(name string) uint16 {
	return cmp.Or(format.SystemProperty(name), b.resource(format.Properties, strings.TrimPrefix(name, "property_")))
}

// write packs the bundle (PLEO-BLD-13, PLEO-BLD-18).
func (b *builder) write() error {
	name := path.Join(b.build, b.p.Name+".urf")
	revision, err := b.p.Revision()
	if err != nil {
		return &Error{[]string{b.result.Project + ": " + err.Error()}}
	}
	b.logf("*** Writing %s ***", name)
	b.logf("Version is %d", revision)
	b.logf("Build Time is %d (%s)", b.began.Unix(), b.began.Format(time.ANSIC))
	bundle := &format.Bundle{Major: 1, Built: uint32(b.began.Unix()), Revision: revision}
	for kind, parts := range b.parts {
		list := &bundle.Resources[kind]
		for _, p := range parts {
			at := int(p.id - format.ResourceKind(kind).FirstID())
			for len(*list) <= at {
				*list = append(*list, format.Resource{}) // keeps the id of a resource that was removed (PLEO-URF-10)
			}
			(*list)[at] = format.Resource{Name: p.base, Data: p.data}
		}
	}
	file, err := bundle.Append(nil)
	if err != nil {
		return err
	}
	if err := b.layout(file, bundle); err != nil {
		return err
	}
	if len(file) > Capacity {
		return &Error{[]string{fmt.Sprintf("%s: %d bytes, want at most %d", name, len(file), Capacity)}}
	}
	b.logf("  URF file fits: %d of %d. %d free", len(file), Capacity, Capacity-len(file))
	if err := b.save(name, file); err != nil {
		return err
	}
	if b.p.Folders { // PLEO-UPF-09
		for kind := range format.Properties {
			for _, p := range b.parts[kind] {
				if err := b.save(path.Join(b.build, kind.String(), path.Base(p.out)), p.data); err != nil {
					return err
				}
			}
		}
	}
	sum := sumOf(file)
	b.logf("Adler32 crc is %08X", sum)
	b.logf("build time: %f sec", b.Now().Sub(b.began).Seconds())
	b.result.File, b.result.Bytes, b.result.Free, b.result.Sum = filepath.Join(b.dir, filepath.FromSlash(name)), len(file), Capacity-len(file), sum
	return nil
}

// layout logs where each resource and index is.
func (b *builder) layout(file []byte, bundle *format.Bundle) error {
	places, err := format.Places(file)
	if err != nil {
		return err
	}
	for kind, parts := range b.parts[:format.Properties] {
		for i := range bundle.Resources[kind] {
			for _, p := range parts {
				if id := format.ResourceKind(kind).FirstID() + uint16(i); p.id == id {
					b.logf("writing %s (%#x) at %#xL", p.out, id, places.Resources[kind][i])
				}
			}
		}
	}
	for kind, tag := range [...]string{"UGSF", "UGMF", "UGCF", "AMX", "PROP"} {
		b.logf("writing %s toc at %#xL", tag, places.Indices[kind])
	}
	return nil
}

// number is strconv.Atoi for options.
func number(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%.20q: want a number", s)
	}
	return v, nil
}
