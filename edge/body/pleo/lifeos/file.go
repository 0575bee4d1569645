package lifeos

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The modes of file_open and the origins of file_seek (PLEO-XAPI-11).
const (
	openRead   = 0
	openWrite  = 1
	openAppend = 3

	seekSet = 0
	seekCur = 1
	seekEnd = 2
)

// The limits of scripts' files.
const (
	maxOpenFiles = 8
	maxFile      = 1 << 20 // bytes
)

// openFile is a file of a script. It is kept in memory and written when it is flushed or closed.
type openFile struct {
	drive *drive
	name  string
	data  []byte
	at    int
	write bool
	dirty bool
}

type files struct {
	open map[int32]*openFile
	last int32
	find []string // names that find_next returns
}

// closeDrive forgets the files of a drive that was taken out.
func (f *files) closeDrive(d *drive) {
	for h, o := range f.open {
		if o.drive == d {
			delete(f.open, h)
		}
	}
}

// openFile opens a file and returns its handle; 0: it cannot be opened.
func (s *System) openFile(name string, mode int32) int32 {
	d, file, err := s.place(name)
	if err == nil && len(s.files.open) >= maxOpenFiles {
		err = fmt.Errorf("%d files are open", maxOpenFiles)
	}
	o := &openFile{drive: d, name: file, write: mode != openRead, dirty: mode == openWrite}
	if err == nil && mode != openWrite {
		o.data, err = d.Read(file, maxFile)
		if mode == openAppend && err != nil {
			o.data, err = nil, nil
		}
		o.data = slices.Clone(o.data)
	}
	if err != nil {
		s.log(Info, LogIO, "open %s: %v", name, err)
		return 0
	}
	if mode == openAppend {
		o.at = len(o.data)
	}
	if s.files.open == nil {
		s.files.open = map[int32]*openFile{}
	}
	s.files.last++
	s.files.open[s.files.last] = o
	return s.files.last
}

// put writes at the place of a file and returns the number of bytes.
func (o *openFile) put(text []byte) int32 {
	if !o.write || o.at+len(text) > maxFile {
		return 0
	}
	o.data = append(o.data, make([]byte, max(0, o.at+len(text)-len(o.data)))...)
	copy(o.data[o.at:], text)
	o.at += len(text)
	o.dirty = true
	return int32(len(text))
}

// line returns the next line with its line feed, of at most most bytes.
func (o *openFile) line(most int) []byte {
	rest := o.data[o.at:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i+1]
	}
	rest = rest[:min(len(rest), most)]
	o.at += len(rest)
	return rest
}

// seek moves the place of a file and returns it.
func (o *openFile) seek(offset, origin int32) int32 {
	base := 0
	switch origin {
	case seekCur:
		base = o.at
	case seekEnd:
		base = len(o.data)
	}
	o.at = min(max(base+int(offset), 0), len(o.data))
	return int32(o.at)
}

// flush writes the file to its drive.
func (s *System) flush(o *openFile) bool {
	if !o.dirty {
		return true
	}
	if err := o.drive.Write(o.name, o.data); err != nil {
		s.log(Warning, LogIO, "write %s: %v", o.name, err)
		return false
	}
	o.dirty = false
	return true
}

// findFiles returns the names that a pattern such as "a:/logs/*.txt" fits, sorted.
func (s *System) findFiles(pattern string) []string {
	d, want, err := s.place(pattern)
	if err != nil {
		return nil
	}
	all, err := d.Files()
	if err != nil {
		s.log(Warning, LogIO, "list files: %v", err)
	}
	var found []string
	for _, name := range all {
		if ok, _ := path.Match(strings.ToLower(want), strings.ToLower(name)); ok { // a bad pattern fits nothing
			found = append(found, path.Base(name))
		}
	}
	slices.Sort(found)
	return found
}

// copyFile copies a file of a script.
func (s *System) copyFile(from, to string) bool {
	data, err := s.readFile(from, maxFile)
	return err == nil && s.writeFile(to, data) == nil
}

// deleteFile removes a file of a script.
func (s *System) deleteFile(name string) bool {
	d, file, err := s.place(name)
	if err == nil && d == &s.drives[1] && s.access < AccessDeveloper {
		err = errors.New(strings.TrimSpace(refused(AccessDeveloper)))
	}
	if err == nil {
		err = d.Remove(file)
	}
	if err != nil {
		s.log(Info, LogIO, "delete %s: %v", name, err)
	}
	return err == nil
}
