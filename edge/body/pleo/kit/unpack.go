package kit

import (
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"kennel/edge/body/pleo/format"
)

// sumOf returns the Adler-32 sum at the end of a bundle.
func sumOf(file []byte) uint32 { return binary.LittleEndian.Uint32(file[len(file)-4:]) }

// Unpack writes what is in a bundle into a folder that is not there yet: each resource as a file in the folder of its kind, and a project file that builds the same bundle again but for its time,
// with the same ids. With open it writes sounds as WAV files and motions as tables instead, which people can change. It returns the names of the files.
func Unpack(name string, file []byte, dir string, open bool) ([]string, error) {
	b, err := format.ReadBundle(file)
	if err != nil {
		return nil, &Error{[]string{name + ": " + err.Error()}}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // everything is written
	u := unpacker{root: root, b: b, open: open}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	p := &format.Project{Name: base, Include: "./include", Compiler: DefaultCompiler, Build: "build", Generated: "include", Temp: "temp"}
	if b.Revision > 0 {
		p.Version = fmt.Sprint(b.Revision)
	}
	for kind := range format.ResourceKind(len(b.Resources)) {
		if err := u.kind(kind, p); err != nil {
			return u.files, err
		}
	}
	return u.files, u.save(base+".upf", p.Append(nil))
}

// unpacker writes the files of a bundle.
type unpacker struct {
	root  *os.Root
	b     *format.Bundle
	open  bool
	files []string
}

func (u *unpacker) save(name string, data []byte) error {
	if err := u.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	u.files = append(u.files, name)
	return u.root.WriteFile(name, data, 0o666)
}

// kind writes the resources of a kind.
func (u *unpacker) kind(kind format.ResourceKind, p *format.Project) error {
	e := enumerations[kind]
	ids := &enumeration{Name: e.enum, Short: strings.TrimSuffix(e.prefix, "_"), Min: int(kind.FirstID()), Max: 32767, NamesOff: true}
	seen := map[string]bool{}
	for i, r := range u.b.Resources[kind] {
		if r.Name == "" && len(r.Data) == 0 {
			continue
		}
		if !plainName(r.Name) || seen[r.Name] {
			return &Error{[]string{fmt.Sprintf("%s %d: name %.40q cannot be the name of a file of its own", kind, i, r.Name)}}
		}
		seen[r.Name] = true
		ids.Entries = append(ids.Entries, entry{int(kind.FirstID()) + i, r.Name})
		s := format.Source{Kind: kind, Path: r.Name}
		if kind != format.Properties {
			data, end := r.Data, ends[kind]
			if u.open {
				data, end = u.readable(kind, data, &s)
			}
			s.Path = kind.String() + "/" + r.Name + end
			if err := u.save(s.Path, data); err != nil {
				return err
			}
		}
		p.Resources = append(p.Resources, s)
	}
	if len(ids.Entries) == 0 {
		return nil
	}
	text, err := xml.MarshalIndent(ids, "", "  ")
	if err != nil {
		return err
	}
	return u.save("include/"+e.name+".xml", append(text, '\n'))
}

// plainName reports whether a name can be the one of a file in its folder, on all systems.
func plainName(s string) bool {
	return s != "" && !strings.ContainsAny(s, "/\\:*?\"<>|") && !strings.HasPrefix(s, ".") && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// readable returns a sound as a WAV file and a motion as a table. Other resources stay as they are.
func (u *unpacker) readable(kind format.ResourceKind, data []byte, source *format.Source) ([]byte, string) {
	switch kind {
	case format.Sounds:
		if s, err := format.ReadSound(data); err == nil {
			source.ADPCM, source.Rate = fmt.Sprint(s.ADPCM), fmt.Sprint(s.Rate)
			return s.WAV(), ".wav"
		}
	case format.Motions:
		if m, err := format.ReadMotion(data); err == nil {
			return m.Curves(u.name).AppendCSV(nil), ".csv"
		}
	}
	return data, ends[kind]
}

// name returns the name of a resource by its id.
func (u *unpacker) name(id uint16) string {
	kind := int(id>>12) - 1
	if at := int(id & 0xFFF); kind >= 0 && kind < len(u.b.Resources) && at < len(u.b.Resources[kind]) {
		return u.b.Resources[kind][at].Name
	}
	return ""
}
