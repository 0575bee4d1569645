package ota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Code is the end of an update as the original updater numbers it (VEC-OTA-16).
type Code int

// The codes. 206 is reserved: the published updater never reports it. No archive is known that makes the decompressor fail with 212. 217 and 218
// are not defined.
const (
	Done           Code = 0
	WrongOrder     Code = 200
	BadManifest    Code = 201
	SlotFailed     Code = 202
	BadURL         Code = 203
	BadArchive     Code = 204
	BadCompression Code = 205
	BadDelta       Code = 207
	DiskFailed     Code = 208
	NotAuthentic   Code = 209
	BadEncryption  Code = 210
	WrongBase      Code = 211
	Decompressor   Code = 212
	WrongUnit      Code = 213
	WrongKind      Code = 214
	TimedOut       Code = 215
	WrongVersion   Code = 216
	Other          Code = 219
)

var codeWords = map[Code]string{
	Done:           "the update succeeded",
	WrongOrder:     "the files of the archive are not in the expected order",
	BadManifest:    "the manifest is not one that this robot understands, or does not fit the archive",
	SlotFailed:     "the robot could not switch between its two systems",
	BadURL:         "there is no update at the address, or no address",
	BadArchive:     "what was downloaded is not an archive, or is damaged",
	BadCompression: "an image is not compressed as it should be, or is damaged",
	206:            "a block could not be written",
	BadDelta:       "the changes of a delta update could not be applied",
	DiskFailed:     "the robot's disk failed or is full",
	NotAuthentic:   "the signature does not belong to the manifest, an image is not the one that was signed, or the release metadata do not name the archive",
	BadEncryption:  "an image is encrypted in a way that this robot does not know",
	WrongBase:      "the delta update is for another version than the one that runs",
	Decompressor:   "the decompressor failed for an unknown reason",
	WrongUnit:      "the factory update is for another robot",
	WrongKind:      "a development robot takes no production release, and the other way round",
	TimedOut:       "no data came for too long",
	WrongVersion:   "the version is not newer than the one that runs, or of another kind",
	Other:          "the update failed for a reason that has no code of its own",
}

// Codes returns the codes of failed updates in ascending order.
func Codes() []Code { return slices.Sorted(maps.Keys(codeWords))[1:] } // without Done

// Words says in English what c means.
func (c Code) Words() string {
	if w, ok := codeWords[c]; ok {
		return w
	}
	return fmt.Sprintf("code %d, which has no meaning here", int(c))
}

// Environment reports whether c is a failure of what is around the robot, such as its network or its disk, and not of the release.
func (c Code) Environment() bool { return c == BadURL || c == DiskFailed || c == TimedOut }

// Failure is an error that ends an update with a code.
type Failure struct {
	Code Code
	Err  error
}

// Fail returns a Failure; the arguments are those of fmt.Errorf.
func Fail(c Code, format string, args ...any) error {
	return &Failure{c, fmt.Errorf(format, args...)}
}

func (f *Failure) Error() string { return fmt.Sprintf("update code %d: %v", int(f.Code), f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

// CodeOf returns the code with which err ends an update: Done for nil, and Other for an error that has none.
func CodeOf(err error) Code {
	if err == nil {
		return Done
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	return Other
}
