package amx

import (
	"fmt"
	"strings"
)

// check reports what Read and Append refuse alike. Offsets are those of the file that Append would write.
func (p *Program) check() error {
	l, err := p.layout()
	if err != nil {
		return err
	}
	if p.Flags&FlagDebug == 0 && len(p.Debug) > 0 {
		return refuse(atFlags, "header.flags", "without debug (0x02)", "it for the %d bytes behind the program", len(p.Debug))
	}
	if (p.Flags&FlagOverlay != 0) != (len(p.Overlays) > 0) {
		return refuse(atFlags, "header.flags", fmt.Sprintf("%#02x with %d overlays", uint16(p.Flags), len(p.Overlays)), "overlays if and only if bit 0x01 is set")
	}
	for i, o := range p.Overlays {
		if o.Offset < 0 || o.Size <= 0 || o.Offset%CellSize != 0 || o.Size%CellSize != 0 || int64(o.Offset)+int64(o.Size) > int64(len(p.Code)) {
			return refuse(l.overlays+i*entrySize, fmt.Sprintf("overlays[%d]", i), fmt.Sprintf("%d bytes at %d", o.Size, o.Offset), "whole cells inside the code of %d bytes", len(p.Code))
		}
	}
	if p.Main != NoMain {
		if err := p.start(atCip, "header.cip", int64(p.Main)); err != nil {
			return err
		}
	}
	for i, e := range p.Publics {
		if err := p.start(l.publics+i*entrySize, fmt.Sprintf("publics[%d]", i), int64(e.Value)); err != nil {
			return err
		}
		if i > 0 && p.Publics[i-1].Name >= e.Name {
			return refuse(l.publics+i*entrySize, fmt.Sprintf("publics[%d].name", i), fmt.Sprintf("%q", e.Name), "a name after %q: they are sorted", p.Publics[i-1].Name)
		}
	}
	for i, e := range p.Pubvars {
		if int64(e.Value) >= int64(len(p.Data)) || e.Value%CellSize != 0 {
			return refuse(l.pubvars+i*entrySize, fmt.Sprintf("pubvars[%d]", i), e.Value, "a cell inside the data of %d bytes", len(p.Data))
		}
	}
	return nil
}

// start reports whether a function can begin at v.
func (p *Program) start(offset int, field string, v int64) error {
	if len(p.Overlays) > 0 {
		if v < 0 || v >= int64(len(p.Overlays)) {
			return refuse(offset, field, v, "one of the %d overlays", len(p.Overlays))
		}
		return nil
	}
	if v < 0 || v >= int64(len(p.Code)) || v%CellSize != 0 {
		return refuse(offset, field, v, "a cell inside the code of %d bytes", len(p.Code))
	}
	return nil
}

// places are the offsets of the tables in the file.
type places struct {
	publics, natives, libraries, pubvars, tags, overlays, nametable, cod int

	padding []byte
}

// layout returns where everything is, and refuses what no file can say.
func (p *Program) layout() (l places, err error) {
	if p.Version < MinVersion || p.Version > MaxVersion {
		return l, &Error{atVersion, "header.file_version", fmt.Sprint(p.Version), fmt.Sprintf("%d to %d", MinVersion, MaxVersion), ErrVersion}
	}
	if m := p.machine(); m < minMachine || m > MaxVersion {
		return l, &Error{atMachine, "header.amx_version", fmt.Sprint(m), fmt.Sprintf("%d to %d", minMachine, MaxVersion), ErrVersion}
	}
	if p.Flags&^fileFlags != 0 {
		return l, refuse(atFlags, "header.flags", fmt.Sprintf("%#04x", uint16(p.Flags)), "only bits of %#04x", uint16(fileFlags))
	}
	if p.Version < 10 && len(p.Overlays) > 0 {
		return l, refuse(atVersion, "header.file_version", p.Version, "10 for overlays")
	}
	if len(p.Code)%CellSize != 0 || len(p.Data)%CellSize != 0 {
		return l, refuse(atDat, "code and data", fmt.Sprintf("%d and %d bytes", len(p.Code), len(p.Data)), "whole cells")
	}
	if p.StackHeapCells < 1 {
		return l, refuse(atStp, "stack and heap", fmt.Sprintf("%d cells", p.StackHeapCells), "at least 1 cell")
	}
	l.publics = headerSize(p.Version)
	l.natives = l.publics + len(p.Publics)*entrySize
	l.libraries = l.natives + len(p.Natives)*entrySize
	l.pubvars = l.libraries + len(p.Libraries)*entrySize
	l.tags = l.pubvars + len(p.Pubvars)*entrySize
	l.overlays = l.tags + len(p.Tags)*entrySize
	l.nametable = l.overlays + len(p.Overlays)*entrySize
	at, limit := l.nametable+2, int(p.nameLimit())
	if limit > MaxName {
		return l, refuse(l.nametable, "nametable.limit", limit, "1 to %d", MaxName)
	}
	for _, t := range p.named() {
		for i, e := range *t.entries {
			if len(e.Name) < 1 || len(e.Name) > limit || strings.ContainsRune(e.Name, 0) {
				return l, refuse(at, fmt.Sprintf("%s[%d].name", t.name, i), fmt.Sprintf("%.40q", e.Name), "1 to %d bytes without zeros", limit)
			}
			at += len(e.Name) + 1
		}
	}
	if l.padding = p.Padding; l.padding == nil {
		l.padding = make([]byte, (CellSize-at%CellSize)%CellSize)
	}
	if l.cod = at + len(l.padding); l.cod%CellSize != 0 {
		return l, refuse(atCod, "header.cod", l.cod, "a multiple of %d: %d bytes of padding, or none given", CellSize, (CellSize-at%CellSize)%CellSize)
	}
	if end := int64(l.cod) + int64(len(p.Code)) + int64(len(p.Data)) + CellSize*int64(p.StackHeapCells); end > maxProgram {
		return l, refuse(atStp, "header.stp", end, "at most %d", maxProgram)
	}
	return l, nil
}

// named are the tables with names, in the order of the file.
func (p *Program) named() []table {
	return []table{
		{"publics", atPublics, &p.Publics}, {"natives", atNatives, &p.Natives}, {"libraries", atLibraries, &p.Libraries},
		{"pubvars", atPubvars, &p.Pubvars}, {"tags", atTags, &p.Tags},
	}
}

func (p *Program) machine() uint8 {
	if p.Machine == 0 {
		return p.Version
	}
	return p.Machine
}

func (p *Program) nameLimit() uint16 {
	if p.NameLimit == 0 {
		return MaxName
	}
	return p.NameLimit
}

// Offsets returns where code and data begin in the file that Append writes. Scripts can read them. The program must be one that Append takes.
func (p *Program) Offsets() (code, data int32) {
	l, _ := p.layout() // the program is sound
	return int32(l.cod), int32(l.cod + len(p.Code))
}
