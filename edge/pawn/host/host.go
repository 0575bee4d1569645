// Package host runs scripts outside a robot: they print, and what a robot would do is printed as the name of the native function with its arguments.
//
// A Session compiles one script and runs its function main piece by piece, with breakpoints and steps, for programs that show a script to a person.
package host

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// Natives returns the native functions of a host that has a console alone: printf prints, the functions of pawn.Basics do what they say, and every other one
// returns 0 and is told to called as "N name(1,2)".
func Natives(print func([]byte), called func(line string)) func(name string) pawn.Native {
	return func(name string) pawn.Native {
		if name == "printf" {
			return func(call pawn.Call) (int32, pawn.Code) {
				text, code := pawn.Format(nil, call, 0)
				print(text)
				return 0, code
			}
		}
		if f := pawn.Basics(name); f != nil {
			return f
		}
		return func(call pawn.Call) (int32, pawn.Code) {
			args := make([]string, min(call.Args(), 64))
			for i := range args {
				args[i] = strconv.Itoa(int(call.Arg(i)))
			}
			called("N " + name + "(" + strings.Join(args, ",") + ")")
			return 0, pawn.OK
		}
	}
}

// Prefix declares the native functions of printf and pawn.Basics; a Session includes it before each script.
const Prefix = `native printf(const format[], {Float, Fixed, _}: ...)
native numargs()
native getarg(arg, index = 0)
native setarg(arg, index = 0, value)
native heapspace()
native funcidx(const name[])
`

// Limits of a Session.
const (
	MaxScript = 64 << 10  // bytes
	MaxOutput = 256 << 10 // bytes; later ones are left out
	maxMemory = 1 << 20   // bytes of a script's data, heap and stack
	maxSleeps = 6
	script    = "script.p"
	prefix    = "default.inc"
	folder    = "include"
)

// State says how far a script is.
type State string

// The states.
const (
	Running State = "running" // its slice is over; Run continues it
	Paused  State = "paused"  // before a line
	Ended   State = "ended"
)

// Report is how a script is after a slice.
type Report struct {
	State     State           `json:"state"`
	Line      int             `json:"line,omitempty"` // from 1, before which it is paused, or in which an error ended it
	Function  string          `json:"function,omitempty"`
	Output    string          `json:"output,omitempty"` // since the last Report
	Code      int32           `json:"code"`             // of Ended; 0: no error
	Value     int32           `json:"value"`            // of Ended: what main returned
	Why       string          `json:"why,omitempty"`    // of Ended with an error, of a refusal to begin, or which variable changed
	Variables []pawn.Variable `json:"variables,omitempty"`
}

// Session is one script. It belongs to one goroutine.
type Session struct {
	machine *pawn.Machine
	symbols *amx.Debug
	call    pawn.Running

	breaks map[int]bool
	watch  map[string]*string // values of watched variables; nil: not seen yet
	begun  bool               // a statement was reached, at offset
	offset int32
	why    string // it is paused: what changed
	pace   bool   // pause at the next line
	last   int    // line of the statement before
	out    []byte
	left   bool // output was left out
	sleeps int
	ended  bool
}

// New compiles a script. The Session is nil if it has errors, of which each is among the messages.
func New(text []byte) (*Session, []compiler.Message, error) {
	if len(text) > MaxScript {
		return nil, nil, fmt.Errorf("%d bytes of script, want at most %d", len(text), MaxScript)
	}
	open := func(name string) ([]byte, error) {
		if name == folder+"/"+prefix {
			return []byte(Prefix), nil
		}
		return nil, fs.ErrNotExist
	}
	r := compiler.Compile(script, text, compiler.Options{Optimise: 0, Debug: 2, Prefix: prefix, Include: []string{folder}, Open: open})
	if r.Program == nil {
		return nil, r.Messages, nil
	}
	s := &Session{breaks: map[int]bool{}, watch: map[string]*string{}}
	var err error
	if s.symbols, err = r.Program.Symbols(); err != nil {
		return nil, r.Messages, err
	}
	s.machine, err = pawn.New(r.Program, pawn.Options{MaxMemory: maxMemory, Statement: s.statement, Natives: Natives(s.print, s.line)})
	if err != nil {
		return nil, r.Messages, err
	}
	if code := s.machine.Begin(&s.call, pawn.Main); code != pawn.OK {
		return nil, r.Messages, fmt.Errorf("the script has no main function")
	}
	return s, r.Messages, nil
}

// Break sets the lines before which the script pauses.
func (s *Session) Break(lines ...int) {
	clear(s.breaks)
	for _, l := range lines {
		s.breaks[l] = true
	}
}

// Watch sets the variables at whose changes the script pauses, from the values that they have where it is.
func (s *Session) Watch(names ...string) {
	before, added := s.watch, false
	s.watch = map[string]*string{}
	for _, n := range names {
		_, known := before[n]
		s.watch[n], added = before[n], added || !known
	}
	if added && s.begun {
		s.changed(s.offset)
	}
}

// changed reports whether a watched variable has another value than before the last statement in which there was one of that name.
func (s *Session) changed(offset int32) bool {
	s.why = ""
	if len(s.watch) == 0 {
		return false
	}
	for _, v := range s.machine.Variables(s.symbols, offset) {
		old, watched := s.watch[v.Name]
		if !watched {
			continue
		}
		if old != nil && *old != v.Value {
			s.why = fmt.Sprintf("%s changed from %s to %s", v.Name, *old, v.Value)
		}
		s.watch[v.Name] = &v.Value
	}
	return s.why != ""
}

func (s *Session) statement(offset int32) bool {
	s.begun, s.offset = true, offset
	_, line, _ := s.symbols.Source(offset)
	if s.changed(offset) {
		s.last = line
		return true
	}
	if line == 0 || line == s.last {
		return false
	}
	s.last = line
	return s.pace || s.breaks[line]
}

func (s *Session) print(text []byte) {
	if len(s.out)+len(text) > MaxOutput {
		s.left = true
		return
	}
	s.out = append(s.out, text...)
}

func (s *Session) line(text string) {
	if n := len(s.out); n > 0 && s.out[n-1] != '\n' {
		text = "\n" + text
	}
	s.print([]byte(text + "\n"))
}

// Run continues the script for about budget instructions, or to the next line with step. A sleep costs no time and is printed.
func (s *Session) Run(budget int64, step bool) (r Report) {
	if s.ended {
		return Report{State: Ended}
	}
	s.pace = step
	end := s.machine.Run(&s.call, budget)
	_, line, function := s.symbols.Source(end.Offset)
	r = Report{State: Running, Line: line, Function: function}
	switch end.State {
	case pawn.Paused:
		r.State, r.Why, r.Variables = Paused, s.why, s.machine.Variables(s.symbols, end.Offset)
	case pawn.Sleeping:
		if s.sleeps++; s.sleeps > maxSleeps {
			r.State, r.Code, r.Why, s.ended = Ended, int32(pawn.ErrSleep), fmt.Sprintf("it slept more than %d times", maxSleeps), true
			break
		}
		s.line(fmt.Sprintf("S sleep pri=%d", end.Pri))
	case pawn.Ended:
		r.State, r.Code, r.Value, s.ended = Ended, int32(end.Code), end.Value, true
		if end.Code != pawn.OK {
			r.Why = end.Code.String()
		}
	}
	if s.left {
		s.left = false
		s.out = append(s.out, "\n[output left out]\n"...)
	}
	r.Output = string(s.out)
	s.out = s.out[:0]
	return r
}
