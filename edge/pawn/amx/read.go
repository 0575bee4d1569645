package amx

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

var order = binary.LittleEndian

// The fields of the header, in bytes from the start of the file (PLEO-AMX-02).
const (
	atSize      = 0
	atMagic     = 4
	atVersion   = 6
	atMachine   = 7
	atFlags     = 8
	atDefsize   = 10
	atCod       = 12
	atDat       = 16
	atHea       = 20
	atStp       = 24
	atCip       = 28
	atPublics   = 32
	atNatives   = 36
	atLibraries = 40
	atPubvars   = 44
	atTags      = 48
	atNametable = 52
	atOverlays  = 56
)

const (
	entrySize  = 8
	maxProgram = 1<<31 - 1
)

// Read returns the program in file, which it copies. An *Error says what is wrong with a file that it refuses. Memory is bounded by the length of file: at most
// nine times that. Instructions are not looked at; see Program.Instructions.
func Read(file []byte) (*Program, error) {
	r := &reader{file: file, p: &Program{}}
	if err := r.header(); err != nil {
		return nil, err
	}
	if err := r.tables(); err != nil {
		return nil, err
	}
	if err := r.body(); err != nil {
		return nil, err
	}
	if err := r.p.check(); err != nil {
		return nil, err
	}
	return r.p, nil
}

type reader struct {
	file []byte
	p    *Program
	name int // where the next name must begin
}

func (r *reader) i32(at int) int { return int(int32(order.Uint32(r.file[at:]))) }

// header reads what says how to read the rest.
func (r *reader) header() error {
	if len(r.file) < atVersion+1 {
		return refuse(len(r.file), "file", fmt.Sprintf("%d bytes long", len(r.file)), "a header of %d bytes", headerSize(MinVersion))
	}
	if m := order.Uint16(r.file[atMagic:]); m != magic {
		found := fmt.Sprintf("%#04x", m)
		switch m {
		case 0xF1E1:
			found += " (64-bit cells)"
		case 0xF1E2:
			found += " (16-bit cells)"
		}
		return refuse(atMagic, "header.magic", found, "%#04x", magic)
	}
	p := r.p
	p.Version = r.file[atVersion]
	if p.Version < MinVersion || p.Version > MaxVersion {
		return &Error{atVersion, "header.file_version", fmt.Sprint(p.Version), fmt.Sprintf("%d to %d", MinVersion, MaxVersion), ErrVersion}
	}
	if want := headerSize(p.Version); len(r.file) < want {
		return refuse(len(r.file), "file", fmt.Sprintf("%d bytes long", len(r.file)), "a header of %d bytes", want)
	}
	p.Machine = r.file[atMachine]
	if p.Machine < minMachine || p.Machine > MaxVersion {
		return &Error{atMachine, "header.amx_version", fmt.Sprint(p.Machine), fmt.Sprintf("%d to %d", minMachine, MaxVersion), ErrVersion}
	}
	p.Flags = Flags(order.Uint16(r.file[atFlags:]))
	if p.Flags&^fileFlags != 0 {
		return refuse(atFlags, "header.flags", fmt.Sprintf("%#04x", uint16(p.Flags)), "only bits of %#04x", uint16(fileFlags))
	}
	if n := order.Uint16(r.file[atDefsize:]); n != entrySize {
		return refuse(atDefsize, "header.defsize", n, "%d", entrySize)
	}
	return nil
}

// table is a part of the file between two offsets of the header.
type table struct {
	name    string
	at      int // field of the header that says where it begins
	entries *[]Entry
}

// tables reads the tables, which follow each other from the header to the name table.
func (r *reader) tables() error {
	p := r.p
	all := p.named()
	if p.Version >= 10 {
		all = append(all, table{name: "overlays", at: atOverlays})
	}
	all = append(all, table{name: "nametable", at: atNametable})
	if first := r.i32(atPublics); first != headerSize(p.Version) {
		return refuse(atPublics, "header.publics", first, "%d, the end of the header", headerSize(p.Version))
	}
	for i, t := range all[:len(all)-1] {
		next := all[i+1]
		from, to := r.i32(t.at), r.i32(next.at)
		if to < from || to > len(r.file)-2 || (to-from)%entrySize != 0 {
			return refuse(next.at, "header."+next.name, to, "%d and a multiple of %d, inside the file of %d bytes", from, entrySize, len(r.file))
		}
	}
	names := r.i32(atNametable)
	p.NameLimit = order.Uint16(r.file[names:])
	if p.NameLimit == 0 || p.NameLimit > MaxName {
		return refuse(names, "nametable.limit", p.NameLimit, "1 to %d", MaxName)
	}
	cod := r.i32(atCod)
	if cod < names+2 || cod > len(r.file) || cod%CellSize != 0 {
		return refuse(atCod, "header.cod", cod, "a multiple of %d from %d to the file's end at %d", CellSize, names+2, len(r.file))
	}
	r.name = names + 2
	for i, t := range all[:len(all)-1] {
		if err := r.entries(t, r.i32(t.at), r.i32(all[i+1].at), cod); err != nil {
			return err
		}
	}
	if pad := r.file[r.name:cod]; len(pad) > 0 {
		p.Padding = bytes.Clone(pad)
		if len(pad) < CellSize && len(bytes.Trim(pad, "\x00")) == 0 {
			p.Padding = nil
		}
	}
	return nil
}

func (r *reader) entries(t table, from, to, cod int) error {
	for i := 0; from < to; i, from = i+1, from+entrySize {
		value, second := order.Uint32(r.file[from:]), order.Uint32(r.file[from+4:])
		if t.entries == nil {
			r.p.Overlays = append(r.p.Overlays, Overlay{int32(value), int32(second)})
			continue
		}
		field := fmt.Sprintf("%s[%d].name", t.name, i)
		if int64(second) != int64(r.name) {
			return refuse(from+4, field, second, "%d, the end of the name before", r.name)
		}
		end := bytes.IndexByte(r.file[r.name:cod], 0)
		if end < 1 || end > int(r.p.NameLimit) {
			found := fmt.Sprintf("%d bytes long", end)
			if end < 0 {
				found = "without an end"
			}
			return refuse(r.name, field, found, "1 to %d bytes and a zero", r.p.NameLimit)
		}
		*t.entries = append(*t.entries, Entry{string(r.file[r.name : r.name+end]), value})
		r.name += end + 1
	}
	return nil
}

// body reads code, data and what follows.
func (r *reader) body() error {
	p := r.p
	size, cod, dat, hea, stp := r.i32(atSize), r.i32(atCod), r.i32(atDat), r.i32(atHea), r.i32(atStp)
	if size < cod || size > len(r.file) {
		return refuse(atSize, "header.size", size, "from %d to the file's length %d", cod, len(r.file))
	}
	if dat < cod || (dat-cod)%CellSize != 0 {
		return refuse(atDat, "header.dat", dat, "%d and whole cells", cod)
	}
	if hea < dat || (hea-dat)%CellSize != 0 {
		return refuse(atHea, "header.hea", hea, "%d and whole cells", dat)
	}
	if stp <= hea || (stp-hea)%CellSize != 0 {
		return refuse(atStp, "header.stp", stp, "more than %d by whole cells", hea)
	}
	p.StackHeapCells = int32((stp - hea) / CellSize)
	plain := r.file[cod:size]
	if p.Flags&FlagCompact != 0 {
		// Each byte gives at most one cell, and a file that would grow is not compact.
		if want := hea - cod; len(plain) > want || want > CellSize*len(plain) {
			return refuse(atHea, "header.hea", hea, "%d to %d for %d bytes of compact code", cod+len(plain), cod+CellSize*len(plain), len(plain))
		}
		var err error
		if plain, err = expand(plain, cod, hea-cod); err != nil {
			return err
		}
	} else if size != hea {
		return refuse(atSize, "header.size", size, "%d as header.hea, because the file is not compact", hea)
	}
	p.Code = bytes.Clone(plain[:dat-cod])
	p.Data = bytes.Clone(plain[dat-cod:])
	p.Main = int32(r.i32(atCip))
	if rest := r.file[size:]; len(rest) > 0 {
		p.Debug = bytes.Clone(rest)
	}
	return nil
}
