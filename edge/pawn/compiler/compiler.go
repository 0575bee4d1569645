package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kennel/edge/pawn/amx"
)

// Define is a constant that the caller sets before the script is read, such as TARGET=100 (PLEO-PBT-11).
type Define struct {
	Name  string
	Value int32
}

// Options are the settings of one compilation. The zero value compiles without optimisation or run-time checks.
type Options struct {
	Version    uint8    // of the file: 10, or 8 or 9 for firmware 1.0 of Pleo, which has no packed instructions and no overlays (PLEO-AMX-04); 0: 10
	Optimise   int      // 0 none, 1 without packed instructions, 2 everything (PLEO-PBT-07)
	Debug      int      // 0 no run-time checks, 1 bounds checks and assert, 2 also symbols, 3 as 2 without optimisation
	Overlay    int      // size limit of one function in bytes; 0: no overlays (PLEO-PBT-06)
	StackHeap  int      // stack and heap together, in cells; 0: 4096 (PLEO-PBT-08)
	Compact    bool     // compact encoding, which LifeOS refuses (part of PLEO-PBT-10)
	Limit      int      // largest program in bytes; 0: none (PLEO-PBT-12)
	DataLimit  int      // largest data, stack and heap in bytes; 0: none (PLEO-PBT-12)
	Semicolon  bool     // a statement must end with a semicolon
	Prefix     string   // file that is included before the script, if it exists; "" none
	Include    []string // folders of include files, in search order (PLEO-PBT-04)
	Defines    []Define
	NoWarnings []int // numbers of warnings that are not reported
	// Absent returns why a name cannot be defined, which error 017 gives as its fix; "": it gives the nearest name. nil: for all names.
	Absent func(name string) string
	// Open returns the text of a file, given a path as the script or Include spells it. nil: no file can be included.
	Open func(path string) ([]byte, error)
}

func (o *Options) disabled(number int) bool { return slices.Contains(o.NoWarnings, number) }

// Result is the outcome of a compilation.
type Result struct {
	Program  *amx.Program // nil after an error
	Messages []Message    // in the order of files and lines
	Lines    int          // lines read, include files too

	// StackCells is how many cells of stack and heap the script needs at most; 0: StackWhy says why that is not known.
	StackCells int
	StackWhy   string
}

// Errors returns the number of errors among the messages.
func (r *Result) Errors() int {
	n := 0
	for _, m := range r.Messages {
		if m.Severity != Warning {
			n++
		}
	}
	return n
}

// pos is a place in the text: file by its number, line and column from 1.
type pos struct {
	line, col int32
	file      int16
}

// compiler is the state of one compilation.
type compiler struct {
	opt Options
	scanner
	symbols
	generator

	messages         []*Message
	reported         map[uint64]int32
	errors, warnings int
	lastLine         int32
	lastFile         int16
	lineErrors       int
	errFlag          bool // an error of this statement was reported: more would follow from it
	quiet            int  // > 0 while the body of an unused function or a trial is read

	bodies     []*body // in source order
	needSemi   bool
	packed     bool // #pragma pack
	exprDepth  int
	depth      int
	noTags     int // > 0 where a colon ends an expression instead of marking a tag
	deprecated string
	isDeprec   bool
	nativeLib  string
	libraries  []string
	noLibs     bool
	rationTag  int
	rationSet  bool
	// rationEarly tells that a rational number came before a #pragma rational. Compile then begins again with the pragma known: the reference reads a script twice.
	rationEarly bool
	digits      int
	stack       int
	limit       int
	dataLimit   int
	overlay     int
	compact     bool
	stackCells  int
	stackWhy    string
	order       int // counts declarations, for "declared before use"
	curStates   int
	spareCode   []instr // room for the code of one body
}

// Compile translates src, the text of the file called name. The result's messages tell what is wrong with it; a result without
// program has at least one error.
func Compile(name string, src []byte, opt Options) *Result {
	if opt.Debug >= 3 {
		opt.Optimise = 0
	}
	older := opt.Version != 0 && opt.Version < amx.MaxVersion
	if older {
		opt.Optimise = min(opt.Optimise, max(int(opt.Version)-amx.MinVersion, 0))
	}
	c, program, later := compile(name, src, opt, nil)
	if later != nil {
		c, program, _ = compile(name, src, opt, later)
	}
	res := &Result{Lines: c.lines}
	slices.SortStableFunc(c.messages, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(c.fileOrder(a.File), c.fileOrder(b.File)), cmp.Compare(a.Line, b.Line))
	})
	for _, m := range c.messages {
		res.Messages = append(res.Messages, *m)
	}
	if c.errors == 0 {
		res.Program, res.StackCells, res.StackWhy = program, c.stackCells, c.stackWhy
	}
	if older && res.Program != nil {
		var lacks *amx.Error
		if p, err := program.Older(opt.Version); errors.As(err, &lacks) { // a copy of an array of several dimensions
			res.Messages = append(res.Messages, Message{Number: 104, Severity: Fatal, Kind: Fatal.String(), File: name, Line: 1, Column: 1,
				Text: fmt.Sprintf(texts[104], lacks.Found), Expected: lacks.Want})
			res.Program = nil
		} else {
			res.Program = p
		}
	}
	return res
}

// compile compiles once. known is a #pragma rational that comes later in the script.
func compile(name string, src []byte, opt Options, known *rationalLater) (c *compiler, program *amx.Program, later *rationalLater) {
	c = &compiler{opt: opt, reported: map[uint64]int32{}, stack: opt.StackHeap, limit: opt.Limit, dataLimit: opt.DataLimit,
		overlay: opt.Overlay, compact: opt.Compact, needSemi: opt.Semicolon}
	if c.stack == 0 {
		c.stack = 4096
	}
	if c.old() {
		c.overlay = 0
	}
	defer func() {
		switch r := recover().(type) {
		case nil, stopped:
		case rationalLater:
			later = &r
		default:
			panic(r)
		}
	}()
	return c, c.compile(name, src, known), nil
}

// old reports whether the file is to have an older version than 10.
func (c *compiler) old() bool { return c.opt.Version != 0 && c.opt.Version < amx.MaxVersion }

func (c *compiler) compile(name string, src []byte, known *rationalLater) *amx.Program {
	c.initScanner()
	c.initSymbols()
	c.initGenerator()
	if known != nil {
		c.rationSet, c.rationTag, c.digits = true, c.tagOf(known.tag), known.digits
	}
	c.openSource(name, src)
	if c.opt.Prefix != "" {
		c.include(c.opt.Prefix, false, true, pos{line: 1, col: 1})
	}
	c.parseFile()
	c.checkIfs()
	c.generate()
	if c.errors > 0 {
		return nil
	}
	return c.link()
}

func (c *compiler) initSymbols() {
	c.names = map[string]*name{}
	for word, kind := range keywords {
		c.intern(word).keyword = kind
	}
	c.boolTag = c.tagOf("bool")
	for _, d := range []Define{{"cellbits", 32}, {"cellmax", 1<<31 - 1}, {"cellmin", -1 << 31}, {"charbits", 8}, {"charmin", 0},
		{"charmax", 254}, {"ucharmax", 1<<24 - 1}, {"EOS", 0}, {"__Pawn", 0x0303}, {"debug", int32(min(c.opt.Debug, 2))},
		{"overlaysize", int32(c.opt.Overlay)}} {
		c.predefine(d, 0)
	}
	c.predefine(Define{"true", 1}, c.boolTag)
	c.predefine(Define{"false", 0}, c.boolTag)
	for _, d := range c.opt.Defines {
		c.predefine(d, 0)
	}
	c.automata = []automaton{{}}
}

func (c *compiler) predefine(d Define, tag int) {
	n := c.intern(d.Name)
	if len(n.global) > 0 {
		n.global[0].value = d.Value
		return
	}
	n.global = append(n.global, &symbol{name: n, kind: kindConst, value: d.Value, tag: tag, use: useDefined | useRead | usePredefined})
}

// fileOrder sorts messages by the order in which files were opened.
func (c *compiler) fileOrder(file string) int { return slices.Index(c.fileNames, file) }

func (c *compiler) fileName(n int16) string {
	if int(n) < len(c.fileNames) {
		return c.fileNames[n]
	}
	return "?"
}

// quote shows a piece of text in a message.
func quote(s string) string {
	if s == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", strings.TrimSpace(s))
}
