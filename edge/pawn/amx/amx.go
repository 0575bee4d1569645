// Package amx reads and writes AMX files: programs of the Pawn language, compiled for the abstract machine of package pawn. Pleo's scripts are such files
// (PLEO-AMX-01, 02).
//
// A file is little-endian and has five parts:
//
//	header      56 bytes, or 60 since version 10 (the last field is the offset of the overlays)
//	tables      publics, natives, libraries, public variables, tags: address and offset of the name, 8 bytes each; overlays: offset and size
//	name table  u16 longest name allowed, then the names, each with a zero behind it; padding
//	code, data  cells of 32 bits; in a compact file each is 1 to 5 bytes, see compact.go
//	debug       symbols for a debugger, only with FlagDebug; kept as bytes
//
// Stack and heap follow the data in memory and are not in the file.
//
// The versions differ in more than the header (PLEO-AMX-04). Files of version 8 and 9 hold absolute code addresses in jumps; version 10 holds distances from the
// instruction, packs small operands into the upper half of the instruction's cell, and may cut the code into overlays. See opcodes.go.
//
// Read takes canonical files only, as the reference compilers 3.2 and 3.3 write them: tables in the order above without gaps, names in the order of the tables.
// What Read takes, Append writes with the same bytes, except compact files whose cells are longer than needed.
package amx

import (
	"errors"
	"fmt"
)

// Versions of the file format that Read takes.
const (
	MinVersion = 8
	MaxVersion = 10
)

// minMachine is the lowest machine version that a file may ask for: the header was another one before.
const minMachine = 6

// CellSize is the size of a cell in bytes.
const CellSize = 4

// MaxName is the longest name that the reference machine has room for, in bytes.
const MaxName = 31

const magic = 0xF1E0 // 32-bit cells; 16 and 64 bits have F1E2 and F1E1

// Flags say what a program needs or has (PLEO-AMX-03).
type Flags uint16

// The flags that a file may have; others belong to a running machine, and Read refuses them.
const (
	FlagOverlay  Flags = 0x01 // the code is cut into overlays
	FlagDebug    Flags = 0x02 // debug symbols follow the program
	FlagCompact  Flags = 0x04 // code and data are in compact encoding
	FlagSleep    Flags = 0x08 // the script can sleep
	FlagNoChecks Flags = 0x10 // compiled without bounds checks
	FlagDataInit Flags = 0x20 // data is initialised by the host

	fileFlags = FlagOverlay | FlagDebug | FlagCompact | FlagSleep | FlagNoChecks | FlagDataInit
)

// NoMain is Program.Main of a program that has no main function.
const NoMain = -1

// Program is an AMX file.
type Program struct {
	Version uint8 // of the file format
	Machine uint8 // lowest version of the machine that can run it; 0 when writing: Version
	Flags   Flags

	Code []byte // cells in file order, expanded
	Data []byte // initial global data, expanded

	StackHeapCells int32 // room for stack and heap
	Main           int32 // where main begins, as Entry.Value of a public; NoMain: there is none

	// Publics are sorted by name: machines look for them by bisection. Value is the byte offset in Code, or the index of an overlay if the program has overlays.
	Publics []Entry
	Natives []Entry // Value is 0: the machine binds them by name
	// Libraries are native libraries that the script asks for. Value is 0.
	Libraries []Entry
	Pubvars   []Entry // Value is the byte offset in Data
	Tags      []Entry // Value is the tag's number
	Overlays  []Overlay

	NameLimit uint16 // longest name that the name table allows; 0 when writing: MaxName
	Padding   []byte // between the name table and the code; nil: zeros up to a whole cell
	Debug     []byte // behind the program
}

// Entry is an entry of a table.
type Entry struct {
	Name  string // Latin-1 or UTF-8, without zeros
	Value uint32
}

// Overlay is a part of the code that is loaded by itself (part of PLEO-AMX-05).
type Overlay struct {
	Offset, Size int32 // bytes in Program.Code; multiples of CellSize
}

// Public returns the index of the public function of that name, and whether there is one.
func (p *Program) Public(name string) (int, bool) {
	for i, e := range p.Publics {
		if e.Name == name {
			return i, true
		}
	}
	return 0, false
}

// headerSize returns the size of a header of that version in bytes.
func headerSize(version uint8) int {
	if version >= 10 {
		return 60
	}
	return 56
}

// Reasons to refuse a file. An Error wraps one of them, or ErrInstruction.
var (
	ErrFormat  = errors.New("not a sound AMX file")       // error 17 of the reference
	ErrVersion = errors.New("unsupported version of AMX") // error 18 of the reference
)

// Error says what is wrong in a file or program, and where.
type Error struct {
	Offset      int    // byte of the file
	Field       string // such as "header.cod" or "publics[2].name"
	Found, Want string
	Err         error // ErrFormat or ErrVersion
}

func (e *Error) Error() string {
	return fmt.Sprintf("amx: byte %d: %s is %s, want %s", e.Offset, e.Field, e.Found, e.Want)
}

func (e *Error) Unwrap() error { return e.Err }

func refuse(offset int, field string, found any, want string, args ...any) error {
	return &Error{Offset: offset, Field: field, Found: fmt.Sprint(found), Want: fmt.Sprintf(want, args...), Err: ErrFormat}
}
