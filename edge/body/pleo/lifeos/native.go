package lifeos

import (
	"regexp"
	"slices"
	"time"

	"kennel/edge/pawn"
)

// Native is a function that scripts call.
type Native struct {
	Include     string // the file that declares it, such as "Sound"
	Declaration string // as in that file, behind the word native
	call        func(e *env) int32
}

var nativeName = regexp.MustCompile(`(\w+)\(`)

// Name returns the name of the function.
func (n Native) Name() string { return nativeName.FindStringSubmatch(n.Declaration)[1] }

// Natives returns all functions that scripts can call, in the order of their include files (PLEO-API-01, PLEO-API-06). Include files are made of it, so that scripts are
// compiled for the functions that run them.
func Natives() []Native {
	return slices.Concat(logNatives(), scriptNatives(), sensorNatives(), propertyNatives(), jointNatives(), motionNatives(), soundNatives(), animationNatives(),
		driveNatives(), infraredNatives(), applicationNatives(), resourceNatives(), fileNatives(), stringNatives(), timeNatives(), attentionNatives(), cameraNatives(), sequenceNatives(),
		hostNatives())
}

// maxScriptText bounds the strings that scripts hand over, in bytes.
const maxScriptText = 1024

// env is a call of a native function.
type env struct {
	pawn.Call
	s    *System
	m    *machine
	code pawn.Code // not OK stops the script
}

// native returns the function of that name for a machine's script; nil: there is none.
func (s *System) native(m *machine, name string) pawn.Native {
	f := s.natives[name]
	if f == nil {
		return pawn.Basics(name)
	}
	return func(c pawn.Call) (int32, pawn.Code) {
		e := env{Call: c, s: s, m: m}
		v := f(&e)
		return v, e.code
	}
}

// text returns a string argument, packed or not (PLEO-VM-21).
func (e *env) text(i int) string {
	t, ok := e.M.Text(e.Arg(i), maxScriptText)
	if !ok {
		e.code = pawn.ErrMemAccess
	}
	return string(t)
}

// flag returns a bool argument.
func (e *env) flag(i int) bool { return e.Arg(i) != 0 }

// bytes returns an array argument with n cells: the characters of a packed string, or a byte of each cell.
func (e *env) bytes(i int, n int32) []byte {
	first, ok := e.M.Cell(e.Arg(i))
	if !ok {
		e.code = pawn.ErrMemAccess
		return nil
	}
	if uint32(first) > 0xFFFFFF {
		return []byte(e.text(i))
	}
	var out []byte
	for k := range min(max(n, 0), maxScriptText) {
		v, ok := e.M.Cell(e.Arg(i) + 4*k)
		if !ok {
			e.code = pawn.ErrMemAccess
			return nil
		}
		out = append(out, byte(v))
	}
	return out
}

// give writes a string to an array of cells and returns its length.
func (e *env) give(i int, text string, packed bool, cells int32) int32 {
	if !e.M.SetText(e.Arg(i), []byte(text), packed, int(cells)) {
		e.code = pawn.ErrMemAccess
	}
	return int32(len(text))
}

// format returns the text of printf arguments from first on.
func (e *env) format(first int) string {
	t, code := pawn.Format(nil, e.Call, first)
	if code != pawn.OK {
		e.code = code
	}
	return string(t)
}

// sleep lets the script continue at a time, or when a wait is over.
func (e *env) sleep(until time.Duration, w *wait) {
	e.m.paused, e.m.pausedOn, e.code = until, w, pawn.ErrSleep
}
