package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// DefaultCompiler is the command that compiles scripts if the project has none (PLEO-UPF-04).
const DefaultCompiler = "pawncc %i -V2048 -O2 -S64 -v2 -C- %I TARGET=100 -o%o"

// oldCompiler is likewise for firmware 1.0, whose scripts have no overlays (PLEO-PBT-06).
const oldCompiler = "pawncc %i -O2 -S64 -v2 -C- %I TARGET=100 PLEO_API=100 -o%o"

// CompilerFor returns the command that compiles scripts for a profile.
func CompilerFor(p lifeos.Profile) string {
	if p == lifeos.Profile10 {
		return oldCompiler
	}
	return DefaultCompiler
}

// installed is the folder in which the original kit is installed, as ${pdk} and ${sdk}, where no macro says another one (PLEO-API-05). Ours is in the program: its
// include files are below include, which is looked at last.
const (
	installed = "<kit>"
	own       = installed + "/include"
)

// compile compiles a script by the project's command (PLEO-PBT-01). The program that the command names is not run: the compiler is ours.
func (b *builder) compile(p *part, text []byte) error {
	b.logf("  Building script '%s'", p.file)
	b.logf("  execute '%s'", p.file)
	list, err := b.expand(b.p.Include)
	if err != nil {
		return err
	}
	words := b.forProfile(commandWords(b.command, p, splitPath(list)))
	b.logf("  @ %s", strings.Join(words, " "))
	o, err := compilerOptions(words[1:], p.file)
	if err != nil {
		return fmt.Errorf("command of the compiler: %w", err)
	}
	o.Include = append(o.Include, own)
	if b.Debug {
		o.Debug = max(o.Debug, 2)
	}
	o.Open = b.open
	if b.profile == lifeos.Profile10 {
		low, high := b.profile.Versions()
		o.Version, o.Absent = low, newer
		if o.Optimise >= 2 { // macro instructions (PLEO-PBT-07)
			o.Version = high
		}
	}
	o.NoWarnings = append(o.NoWarnings, 235) // LifeOS calls public functions by their names: a heading before is of no use
	r := compiler.Compile(p.file, text, o)
	var bad Error
	warnings := 0
	for _, m := range r.Messages {
		switch {
		case m.Severity != compiler.Warning:
			bad.Problems = append(bad.Problems, m.String())
			fallthrough
		default:
			b.logf("%v", m)
		}
		if m.Severity == compiler.Warning {
			warnings++
			b.warn("%v", m)
		}
	}
	if r.Program == nil {
		return &bad
	}
	if p.data, err = r.Program.Append(nil); err != nil {
		return err
	}
	b.sizes(p, r, o)
	switch warnings {
	case 0:
	case 1:
		b.logf("1 Warning.")
	default:
		b.logf("%d Warnings.", warnings)
	}
	return nil
}

// splitPath splits a list of folders at its colons. The one behind the letter of a Windows drive does not count (PLEO-UPF-03).
func splitPath(list string) []string {
	var out []string
	for word := range strings.SplitSeq(list, ":") {
		if n := len(out); n > 0 && len(out[n-1]) == 1 && (strings.HasPrefix(word, "/") || strings.HasPrefix(word, `\`)) {
			out[n-1] += ":" + word
		} else if word != "" {
			out = append(out, word)
		}
	}
	for i := range out {
		out[i] = slashed(out[i])
	}
	return out
}

// commandWords puts the files and folders into the command: %i, %I and %o (PLEO-PBT-03, PLEO-PBT-04, PLEO-PBT-05).
func commandWords(command string, p *part, dirs []string) []string {
	out := []string{}
	for _, w := range strings.Fields(command) {
		if w == "%I" {
			for _, d := range dirs {
				out = append(out, "-i"+d)
			}
			continue
		}
		out = append(out, strings.NewReplacer("%i", p.file, "%o", p.out).Replace(w))
	}
	if len(out) == 0 {
		out = append(out, "pawncc")
	}
	return out
}

// profileOf returns the profile that a command of the compiler is for: PLEO_API says it, 100 or 110 (PLEO-PBT-11).
func profileOf(command string) (lifeos.Profile, error) {
	profile := lifeos.Profile11
	for _, w := range strings.Fields(command) {
		value, ok := strings.CutPrefix(w, apiName)
		if !ok {
			continue
		}
		switch value {
		case apiValue(lifeos.Profile11):
			profile = lifeos.Profile11
		case apiValue(lifeos.Profile10):
			profile = lifeos.Profile10
		default:
			return 0, fmt.Errorf("%.40q: want %s for profile %s, or %s for %s", w, apiValue(lifeos.Profile11), lifeos.Profile11, apiValue(lifeos.Profile10), lifeos.Profile10)
		}
	}
	return profile, nil
}

const apiName = "PLEO_API="

func apiValue(p lifeos.Profile) string { return strconv.Itoa(int(p.API())) }

// forProfile returns the words of a command as the profile needs them: PLEO_API says it where the project does not, and the scripts of firmware 1.0 have no overlays.
func (b *builder) forProfile(words []string) []string {
	out := words[:0]
	for _, w := range words {
		if strings.HasPrefix(w, apiName) || b.profile == lifeos.Profile10 && strings.HasPrefix(w, "-V") {
			continue
		}
		out = append(out, w)
	}
	if b.profile != lifeos.Profile11 || strings.Contains(b.command, apiName) {
		out = append(out, apiName+apiValue(b.profile))
	}
	return out
}

// newer returns why a script for firmware 1.0 has no such name; "": 1.1 has none either. Packets for scripts came with 1.1 (PLEO-PKT-07).
func newer(name string) string {
	if name != "SENSOR_PACKET" && name != "sensor_config_packet_filter" && !strings.HasPrefix(name, "PACKET_") {
		return ""
	}
	return fmt.Sprintf("profile %s has no %s; leave it out, or build for profile %s with %s%s", lifeos.Profile10, name, lifeos.Profile11, apiName, apiValue(lifeos.Profile11))
}

// compilerOptions reads the options of a command. The name of the script and of the result are left out.
func compilerOptions(words []string, script string) (compiler.Options, error) {
	o := compiler.Options{Optimise: 1, Debug: 1, Prefix: "default.inc"}
	var err error
	for _, w := range words {
		if w == script || strings.HasPrefix(w, "-o") {
			continue
		}
		if name, value, ok := strings.Cut(w, "="); ok && !strings.HasPrefix(w, "-") {
			v, err := strconv.ParseInt(value, 0, 33)
			if err != nil || name == "" {
				return o, fmt.Errorf("%.40q: want NAME=NUMBER", w)
			}
			o.Defines = append(o.Defines, compiler.Define{Name: name, Value: int32(v)})
			continue
		}
		if len(w) < 2 || w[0] != '-' {
			return o, fmt.Errorf("%.40q: want an option or NAME=NUMBER", w)
		}
		value := strings.TrimPrefix(w[2:], ":")
		n := 0
		switch w[1] {
		case 'V', 'O', 'S', 'd', 'v', 't':
			if n, err = number(value); err != nil {
				return o, fmt.Errorf("-%c: %w", w[1], err)
			}
		}
		switch w[1] {
		case 'V':
			o.Overlay = n
		case 'O':
			o.Optimise = min(n, 2)
		case 'S':
			o.StackHeap = n
		case 'd':
			o.Debug = min(n, 3)
		case 'v', 't': // how much is printed, and the width of tabs
		case 'i':
			o.Include = append(o.Include, slashed(value))
		case 'p':
			o.Prefix = value
		case 'C':
			o.Compact = value != "-"
		case ';':
			o.Semicolon = value != "-"
		case 'w':
			if n, err = number(strings.TrimRight(value, "+-")); err != nil {
				return o, fmt.Errorf("-w: %w", err)
			}
			o.NoWarnings = append(o.NoWarnings, n)
		case 'X':
			to := &o.Limit
			if rest, data := strings.CutPrefix(value, "D"); data {
				value, to = rest, &o.DataLimit
			}
			if *to, err = number(value); err != nil {
				return o, fmt.Errorf("-X: %w", err)
			}
		default:
			return o, fmt.Errorf("option %.40q: want one of -V -O -S -d -v -t -i -p -C -; -w -X -o", w)
		}
	}
	if o.Compact {
		return o, errors.New("-C+: Pleo does not read compact scripts; want -C-") // part of PLEO-PBT-10
	}
	return o, nil
}

// open opens a source file: of the project, of a folder that it names, or of the kit.
func (b *builder) open(name string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(name)), installed+"/"); ok {
		if text, err := includes.ReadFile(rest); err == nil {
			return text, nil
		}
		return nil, fs.ErrNotExist
	}
	return read(b.path(filepath.ToSlash(name)))
}

// pool is how many bytes of code all scripts can have at once (part of PLEO-LIM-01).
const pool = 8 << 10

// sizes logs the parts of a script and warns of one that Pleo cannot load (PLEO-LIM-05).
func (b *builder) sizes(p *part, r *compiler.Result, o compiler.Options) {
	prog := r.Program
	stack := amx.CellSize * int(prog.StackHeapCells)
	header := len(p.data) - len(prog.Code) - len(prog.Data)
	if prog.Flags&amx.FlagDebug != 0 {
		plain := *prog
		plain.Flags &^= amx.FlagDebug
		plain.Debug = nil
		if file, err := plain.Append(nil); err == nil {
			header = len(file) - len(prog.Code) - len(prog.Data)
		}
	}
	b.logf("Header size:       %8d bytes", header)
	b.logf("Code size:         %8d bytes", len(prog.Code))
	code := len(prog.Code)
	if o.Overlay > 0 {
		code = 0
		for _, v := range prog.Overlays {
			code = max(code, int(v.Size))
		}
		b.logf("Max. overlay size: %8d bytes; largest overlay=%d bytes", o.Overlay, code)
	}
	b.logf("Data size:         %8d bytes", len(prog.Data))
	use := fmt.Sprintf("%d cells (%d bytes)", r.StackCells, amx.CellSize*r.StackCells)
	if r.StackCells == 0 {
		use = "unknown, due to " + r.StackWhy
	}
	b.logf("Stack/heap size:   %8d bytes; estimated max. usage=%s", stack, use)
	total := header + len(prog.Data) + stack
	if o.Overlay > 0 {
		b.logf("Total requirements:%8d bytes", total+o.Overlay)
	} else {
		b.logf("Total requirements:%8d bytes", total+len(prog.Code))
	}
	vm := b.profile.VMOf(p.base)
	if most := b.profile.Block(vm); total > most {
		b.warn("%s: header, data and stack are %d bytes, more than the %d of the %s VM of firmware %s; Pleo will not load it", p.file, total, most, vm, b.profile)
	}
	if amx.CellSize*r.StackCells > stack {
		b.warn("%s: needs up to %d cells of stack and heap, and has %d; use -S%d", p.file, r.StackCells, prog.StackHeapCells, r.StackCells)
	}
	if code > pool {
		b.warn("%s: %d bytes of code at once, more than the %d of all scripts; use -V%d", p.file, code, pool, pool)
	}
}

// fits refuses a finished script that the firmware of the profile does not load (PLEO-PDK-04).
func (b *builder) fits(script []byte) error {
	p, err := amx.Read(script)
	if err != nil {
		return err
	}
	if low, high := b.profile.Versions(); p.Version < low || p.Version > high {
		return fmt.Errorf("script of AMX version %d: want %d to %d, which profile %s loads", p.Version, low, high, b.profile)
	}
	return nil
}

// check refuses a finished resource that Pleo cannot read.
func check(kind format.ResourceKind, data []byte) error {
	var err error
	switch kind {
	case format.Sounds:
		_, err = format.ReadSound(data)
	case format.Motions:
		_, err = format.ReadMotion(data)
	case format.Commands:
		var c *format.Command
		if c, err = format.ReadCommand(data); err == nil {
			_, err = c.Plays()
		}
	case format.Scripts:
		var p *amx.Program
		if p, err = amx.Read(data); err == nil && p.Flags&amx.FlagCompact != 0 {
			err = errors.New("compact encoding, which Pleo does not read")
		}
	}
	return err
}
