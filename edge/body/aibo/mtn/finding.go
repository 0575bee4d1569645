package mtn

import (
	"fmt"
	"strings"
)

// Severity says how bad a finding is.
type Severity int

// The severities. Note is worth knowing and never wrong; a file with a Warning can be played; a Fault cannot.
const (
	Note Severity = iota
	Warning
	Fault
)

// String returns "note", "warning" or "error".
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[s] }

// MarshalText writes the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that a reader or a check noticed, with its place (MTN-51). A Finding that ends reading is its error.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`   // one of the codes of this package: stable, for programs
	Offset   int64    `json:"offset"` // in the file, in bytes; -1: it concerns no place
	Block    int      `json:"block"`  // 0 to 3; -1: the signature, or the whole file
	What     string   `json:"what"`
	Expected string   `json:"expected,omitempty"`
	Found    string   `json:"found,omitempty"`
}

// Error returns "offset 0x24, block 1: string length: expected at most 16, found 24".
func (f Finding) Error() string {
	var b strings.Builder
	if f.Offset >= 0 {
		fmt.Fprintf(&b, "offset %#x, ", f.Offset)
	}
	if f.Block >= 0 {
		fmt.Fprintf(&b, "block %d, ", f.Block)
	}
	text := strings.TrimSuffix(b.String(), ", ")
	if text != "" {
		text += ": "
	}
	text += f.What
	if f.Expected != "" {
		text += ": expected " + f.Expected + ", found " + f.Found
	}
	return text
}

// The codes of findings of the reader.
const (
	CodeSignature   = "signature"         // not an MTN file
	CodeTruncated   = "truncated"         // the file ends inside
	CodeBlockNumber = "block-number"      // another block than the next one
	CodeBlockLength = "block-length"      // less than the block's own head, or beyond the file
	CodeRepaired    = "block-moved"       // found at the next aligned offset
	CodeString      = "string-length"     // a string goes beyond its block
	CodeSections    = "sections"          // not 4
	CodeVersion     = "version"           // not 1.0, 1.1 or 1.2
	CodeRate        = "rate"              // neither 16 nor, for ERS-110, 0
	CodeOptions     = "options"           // not 0
	CodeDataType    = "data-type"         // not 0
	CodePadding     = "padding"           // not zero
	CodeEmpty       = "no-keyframes"      // nothing to play
	CodeMissing     = "keyframes-missing" // fewer keyframes than the header says
	CodeLength      = "keyframes-length"  // block 3 is not as long as its keyframes
	CodeForm        = "keyframes-form"    // block 3 has the form of another version
	CodeTail        = "trailing"          // bytes behind the last block
)
