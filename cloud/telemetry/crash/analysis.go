package crash

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/cloud/telemetry/crash/minidump"
	"kennel/cloud/telemetry/crash/record"
	"kennel/cloud/telemetry/crash/unwind"
	"kennel/infra/errs"
)

// Said is the trust in a frame that the program's own runtime wrote down.
const Said unwind.Trust = "said"

// Frame is a function call, the innermost first.
type Frame struct {
	Module   string `json:"module,omitempty"`
	Offset   string `json:"offset,omitempty"` // of the instruction in the module, in hex; of a frame in no module its address
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Trust says how the frame was found: context (where the thread was), cfi (by the symbols), fp (by the frame pointer or link register), scan (a word on the
	// stack that could be a return address), or said (by the program's own runtime).
	Trust unwind.Trust `json:"trust"`
}

// Where is the frame in words.
func (f Frame) Where() string {
	switch {
	case f.Function != "":
		return bare(f.Function)
	case f.Module != "":
		return f.Module + "+" + f.Offset
	}
	return f.Offset
}

// Thread is a stack.
type Thread struct {
	ID      uint64  `json:"id"`
	Name    string  `json:"name,omitempty"`
	State   string  `json:"state,omitempty"` // of a goroutine
	Crashed bool    `json:"crashed,omitempty"`
	Frames  []Frame `json:"frames"`
	More    int     `json:"more,omitempty"` // frames that are not shown
}

// Module is a file that the program ran.
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	DebugID string `json:"debug_id,omitempty"` // as symbol files have it
	Base    string `json:"base"`
	Size    uint64 `json:"size"`
	Symbols bool   `json:"symbols"` // there are symbols for it
	Used    bool   `json:"used"`    // by a frame
}

// Analysis holds the facts of a dump.
type Analysis struct {
	Format  string            `json:"format"` // minidump or go
	Reason  string            `json:"reason"`
	Address string            `json:"address,omitempty"` // that the signal is about
	System  string            `json:"system,omitempty"`  // operating system and processor
	Threads []Thread          `json:"threads"`           // the one that crashed first
	More    int               `json:"more,omitempty"`    // threads that are not shown
	Modules []Module          `json:"modules,omitempty"`
	Facts   map[string]string `json:"facts,omitempty"` // what else the dump says, in its own words

	Program, Version, BootID string    `json:"-"`
	At                       time.Time `json:"-"`
}

// needs returns the debug ids of the modules in the stacks.
func (a Analysis) needs() []string {
	out := []string{}
	for _, m := range a.Modules {
		if m.Used && m.DebugID != "" && !slices.Contains(out, m.DebugID) {
			out = append(out, m.DebugID)
		}
	}
	return out
}

// analyse reads a dump of any form.
func (s *Service) analyse(ctx context.Context, dump []byte) (Analysis, error) {
	switch {
	case bytes.HasPrefix(dump, []byte(minidump.Magic)):
		d, err := minidump.Parse(dump)
		if err != nil {
			return Analysis{}, err
		}
		return s.ofMinidump(ctx, d)
	case bytes.HasPrefix(dump, []byte(record.Magic)):
		r, err := record.Parse(dump)
		return ofRecord(r), err
	}
	return Analysis{}, errs.New(errs.Invalid, "the dump begins with %.12q: want a minidump (MDMP) or a crash record (%q)", dump[:min(len(dump), 12)], record.Magic+"1")
}

// ofRecord converts a record of our own.
func ofRecord(r record.Record) Analysis {
	h := r.Headers
	a := Analysis{Format: "go", Reason: cmp.Or(r.Reason, h["reason"], "ended without a word"), Program: h["program"], Version: h["version"], BootID: h["boot_id"], Facts: h, More: r.More}
	a.At, _ = time.Parse(time.RFC3339, h["time"]) // zero: not known
	for i, g := range r.Goroutines {
		t := Thread{ID: g.ID, State: g.State, Crashed: i == 0, More: g.More}
		for _, f := range g.Frames {
			t.Frames = append(t.Frames, Frame{Function: f.Func, File: f.File, Line: f.Line, Trust: Said})
		}
		a.Threads = append(a.Threads, t)
	}
	return a
}

// signed is how many frames make a signature.
const signed = 3

// machinery are functions that every crash passes, whatever its cause: those of the Go runtime, and those of C and C++ that end a program.
var machinery = regexp.MustCompile(`^(runtime\.|runtime/|internal/runtime/|panic$|sync\.fatal|sync\.throw|log\.(Fatal|Panic)|log\.\(\*Logger\)\.(Fatal|Panic))` +
	`|^_*(abort|raise|gsignal|pthread_kill\w*|libc_fatal|libc_message|assert_fail\w*|assert2?|stack_chk_fail|fortify_fail|chk_fail|restore_rt|kill|tgkill|futex_abstimed\w*|memcpy_chk|strcpy_chk|GI_\w+|default_sa_restorer\w*)(@.*)?$` +
	`|^(std::terminate|std::unexpected|__cxxabiv1::|__cxa_|__gnu_cxx::__verbose|google_breakpad::|operator new|logging::LogMessage|google::LogMessage|android::fatal)`)

// libraries hold nothing but machinery where there are no symbols for them.
var libraries = regexp.MustCompile(`^(libc|libpthread|ld|ld-linux.*|libgcc_s|libstdc\+\+|libc\+\+|linux-gate|linux-vdso|libm|libdl|librt|\[vdso\]|\[vectors\])([-.].*)?$`)

var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// signature names the first functions of the stack that crashed: the same for crashes with the same cause, over versions as far as there are symbols.
func (a Analysis) signature() string {
	var frames []Frame
	if len(a.Threads) > 0 {
		frames = a.Threads[0].Frames
	}
	telling := slices.DeleteFunc(slices.Clone(frames), func(f Frame) bool {
		if f.Function != "" {
			return machinery.MatchString(bare(f.Function))
		}
		return f.Module == "" || libraries.MatchString(f.Module)
	})
	// Rather machinery than nothing; but a Go program that a signal from outside ended waits in the runtime wherever it happened to be.
	if len(telling) == 0 && !(len(frames) > 0 && frames[0].Trust == Said) {
		telling = frames
	}
	var out []string
	for i, f := range telling {
		// Frames found by scanning differ from crash to crash; the first is better than none, and one with a name is likely.
		if len(out) == signed || f.Trust == unwind.Scan && f.Function == "" && i > 0 {
			break
		}
		if f.Module == "" && f.Function == "" {
			continue // an address alone differs at each start
		}
		out = append(out, f.Where())
	}
	if len(out) == 0 {
		return numbers.ReplaceAllString(a.Reason, "N")
	}
	return strings.Join(out, " | ")
}

// bare is the name of a function without its parameters and template arguments, which change more often than it does.
func bare(name string) string {
	var b strings.Builder
	depth := 0
	for i, c := range name {
		switch {
		case strings.ContainsRune("<[", c) && !strings.HasSuffix(b.String(), "operator"):
			depth++
		case c == '(' && depth == 0 && !strings.HasPrefix(name[i:], "(anonymous namespace)") && !strings.HasPrefix(name[i:], "(*") && !strings.HasSuffix(b.String(), "operator") && i > 0:
			return b.String()
		case strings.ContainsRune(">]", c) && depth > 0:
			if depth--; depth == 0 {
				continue
			}
		}
		if depth == 0 {
			b.WriteRune(c)
		}
	}
	if b.Len() == 0 {
		return name
	}
	return b.String()
}

// base is the last part of a path.
func base(name string) string { return path.Base(strings.ReplaceAll(name, `\`, "/")) }

// hex is a number as people read addresses.
func hex(n uint64) string { return fmt.Sprintf("0x%x", n) }
