package pawn

import "fmt"

// Code is how a call ended, or why a program cannot be loaded. The numbers are those of the reference machine (AMX_ERR).
type Code int32

// The codes. Scripts can end with others too, by the statement exit.
const (
	OK           Code = 0
	ErrExit      Code = 1  // the script executed exit
	ErrAssert    Code = 2  // an assertion failed
	ErrStack     Code = 3  // stack and heap collide
	ErrBounds    Code = 4  // an array index, or an address in the code, is out of bounds
	ErrMemAccess Code = 5  // an address outside the script's memory
	ErrInvInstr  Code = 6  // no instruction
	ErrStackLow  Code = 7  // more taken from the stack than was put there
	ErrHeapLow   Code = 8  // more taken from the heap than was put there
	ErrCallback  Code = 9  // a native index without function
	ErrNative    Code = 10 // a native function failed
	ErrDivide    Code = 11 // division by zero
	ErrSleep     Code = 12 // the script sleeps and can be continued
	ErrInvState  Code = 13 // no implementation of a function for the state
	ErrMemory    Code = 16 // more memory than allowed
	ErrFormat    Code = 17 // not a sound file
	ErrVersion   Code = 18 // another version of the file
	ErrNotFound  Code = 19 // no function of that name
	ErrIndex     Code = 20 // no public function of that index
	ErrInit      Code = 22 // a call was continued that is not the latest, or has ended
	ErrParams    Code = 25 // wrong arguments
	ErrDomain    Code = 26 // a result does not fit
	ErrGeneral   Code = 27 // unknown error
	ErrOverlay   Code = 28 // no such overlay
)

var codeNames = map[Code]string{
	OK: "ok", ErrExit: "exit", ErrAssert: "assertion failed", ErrStack: "stack and heap collide", ErrBounds: "out of bounds", ErrMemAccess: "invalid memory access",
	ErrInvInstr: "invalid instruction", ErrStackLow: "stack underflow", ErrHeapLow: "heap underflow", ErrCallback: "invalid native call", ErrNative: "native function failed",
	ErrDivide: "division by zero", ErrSleep: "sleeping", ErrInvState: "no function for this state", ErrMemory: "out of memory", ErrFormat: "invalid file", ErrVersion: "unsupported version",
	ErrNotFound: "function not found", ErrIndex: "invalid function index", ErrInit: "call not ready", ErrParams: "parameter error", ErrDomain: "result out of range",
	ErrGeneral: "general error", ErrOverlay: "no such overlay",
}

func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("error %d", int32(c))
}

// LoadError says why New refuses a program.
type LoadError struct {
	Code   Code
	Offset int    // byte in the program's code; -1: not about the code
	Reason string // found and expected
}

func (e *LoadError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("load script: %s (error %d)", e.Reason, int32(e.Code))
	}
	return fmt.Sprintf("load script: code byte %d: %s (error %d)", e.Offset, e.Reason, int32(e.Code))
}
