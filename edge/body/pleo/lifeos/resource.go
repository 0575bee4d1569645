package lifeos

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kennel/edge/body/pleo/format"
)

// Storage is a drive: the SD card or the dataflash. Names are paths without drive letter, such as "sounds/beep.usf".
type Storage interface {
	// Files returns the names of all files.
	Files() ([]string, error)
	// Read returns a file of at most limit bytes. The error wraps fs.ErrNotExist if there is none.
	Read(name string, limit int) ([]byte, error)
	// Write replaces a file; an interrupted Write leaves the former one.
	Write(name string, data []byte) error
	Remove(name string) error
}

// maxBundle is the capacity of the robot's storage in bytes.
const maxBundle = 3_649_536

// extensions are the ends of single files of each kind of resources.
var extensions = [...]string{format.Sounds: ".usf", format.Motions: ".umf", format.Commands: ".ucf", format.Scripts: ".amx"}

// drive is a mounted Storage.
type drive struct {
	Storage
	letter string
	loose  map[string]string // name of the file for a base name with its extension, in lower case
	bundle *bundle
}

// bundle is an application's URF.
type bundle struct {
	*format.Bundle
	name string
}

// resource is a file that a service can play or run. id is 0 if the application does not number it.
type resource struct {
	kind  format.ResourceKind
	name  string
	id    int32
	data  []byte
	drive int
	from  *bundle // nil: a single file
}

// path returns where the resource comes from.
func (r resource) path() string {
	if r.from != nil {
		return r.from.name + "/" + r.name
	}
	if r.kind < format.Properties {
		return r.name + extensions[r.kind]
	}
	return r.name
}

// mount makes the files of a drive known.
func (s *System) mount(i int, from Storage) {
	d := drive{Storage: from, letter: [...]string{"a", "b"}[i], loose: map[string]string{}}
	if from == nil {
		s.drives[i] = d
		return
	}
	names, err := from.Files()
	if err != nil {
		s.log(Error, LogResource, "list drive %s: %v", d.letter, err)
	}
	slices.Sort(names)
	var bundles []string
	for _, name := range names {
		base := strings.ToLower(path.Base(name))
		if path.Ext(base) == ".urf" {
			bundles = append(bundles, name)
		} else if _, known := d.loose[base]; !known {
			d.loose[base] = name
		}
	}
	if i := slices.IndexFunc(bundles, func(n string) bool { return strings.EqualFold(path.Base(n), "pleo.urf") }); i > 0 {
		bundles[0] = bundles[i] // PLEO-APP-03
	}
	if len(bundles) > 0 {
		d.bundle = s.openBundle(from, d.letter+":"+bundles[0], bundles[0])
	}
	s.drives[i] = d
}

// openBundle reads a URF, and refuses one whose sum is wrong (PLEO-APP-04).
func (s *System) openBundle(from Storage, shown, name string) *bundle {
	file, err := from.Read(name, maxBundle)
	var b *format.Bundle
	if err == nil {
		b, err = format.ReadBundle(file)
	}
	if err != nil {
		s.log(Error, LogResource, "open %s: %v", shown, err)
		return nil
	}
	s.log(Info, LogResource, "%s opened", shown)
	return &bundle{b, shown}
}

// find returns the resource of that kind and name: a single file on the card, the card's bundle, a single file in the dataflash, its bundle (PLEO-APP-05). The
// name may begin with a drive letter.
func (s *System) find(kind format.ResourceKind, name string) (resource, error) {
	want, first, last := name, 0, len(s.drives)-1
	if letter, rest, ok := strings.Cut(name, ":"); ok {
		i := slices.IndexFunc(s.drives[:], func(d drive) bool { return strings.EqualFold(d.letter, letter) })
		if i < 0 {
			return resource{}, fmt.Errorf("%s: %w: no drive %s", name, fs.ErrNotExist, letter)
		}
		want, first, last = rest, i, i
	}
	want = strings.TrimSuffix(path.Base(want), extensions[kind])
	for i := first; i <= last; i++ {
		d := &s.drives[i]
		if file, ok := d.loose[strings.ToLower(want)+extensions[kind]]; ok {
			data, err := d.Read(file, maxBundle)
			if err != nil {
				return resource{}, fmt.Errorf("read %s:%s: %w", d.letter, file, err)
			}
			r := resource{kind: kind, name: want, data: data, drive: i}
			r.id = s.idOf(kind, want)
			return r, nil
		}
		if d.bundle == nil {
			continue
		}
		for n, e := range d.bundle.Resources[kind] {
			if e.Name != "" && strings.EqualFold(e.Name, want) {
				return resource{kind, e.Name, int32(kind.FirstID()) + int32(n), e.Data, i, d.bundle}, nil
			}
		}
	}
	return resource{}, fmt.Errorf("%s: %w: no such resource of kind %v", name, fs.ErrNotExist, kind)
}

// active returns the bundles in the order of lookup, first the one that a script comes from.
func (s *System) active(own *bundle) (list []*bundle) {
	for _, b := range []*bundle{own, s.drives[0].bundle, s.drives[1].bundle} {
		if b != nil && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return list
}

// idOf returns the id of a resource of the active bundles by its name; 0: none.
func (s *System) idOf(kind format.ResourceKind, name string) int32 {
	for _, b := range s.active(nil) {
		for n, e := range b.Resources[kind] {
			if e.Name != "" && strings.EqualFold(e.Name, name) {
				return int32(kind.FirstID()) + int32(n)
			}
		}
	}
	return 0
}

// byID returns the kind and name of the resource with an id, as the application of own numbers it. Its data is not read.
func (s *System) byID(id int32, own *bundle) (resource, bool) {
	kind := format.ResourceKind(id>>12 - 1)
	if id < 0 || kind < format.Sounds || kind > format.Properties {
		return resource{}, false
	}
	n := int(id) - int(kind.FirstID())
	for _, b := range s.active(own) {
		if list := b.Resources[kind]; n < len(list) {
			return resource{kind: kind, name: list[n].Name, id: id, from: b}, list[n].Name != ""
		}
	}
	return resource{}, false
}

// numbered returns the resource of that kind and id. A single file of its name comes first, as in find (PLEO-APP-06).
func (s *System) numbered(kind format.ResourceKind, id int32, own *bundle) (resource, error) {
	r, ok := s.byID(id, own)
	if !ok || r.kind != kind {
		return resource{}, fmt.Errorf("resource %#x: %w of kind %v", id, fs.ErrNotExist, kind)
	}
	found, err := s.find(kind, r.name)
	found.id = id
	return found, err
}

var errDrive = errors.New("no drive, or nothing in it")

// place returns the drive and the name in it of a path of a script, such as "a:/dir/file.txt". Paths cannot leave their drive.
func (s *System) place(name string) (*drive, string, error) {
	i := s.device
	if letter, rest, ok := strings.Cut(name, ":"); ok {
		if i = slices.IndexFunc(s.drives[:], func(d drive) bool { return strings.EqualFold(d.letter, letter) }); i < 0 {
			return nil, "", fmt.Errorf("%.40q: %w", name, errDrive)
		}
		name = rest
	}
	name = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
	if s.drives[i].Storage == nil || name == "" {
		return nil, "", fmt.Errorf("%.40q: %w", name, errDrive)
	}
	return &s.drives[i], name, nil
}

func (s *System) readFile(name string, limit int) ([]byte, error) {
	d, file, err := s.place(name)
	if err != nil {
		return nil, err
	}
	return d.Read(file, limit)
}

func (s *System) writeFile(name string, data []byte) error {
	d, file, err := s.place(name)
	if err == nil {
		err = d.Write(file, data)
	}
	if err != nil {
		s.log(Warning, LogIO, "write %s: %v", name, err)
	}
	return err
}
