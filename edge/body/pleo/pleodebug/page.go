package pleodebug

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/pawn"
	"kennel/edge/pawn/compiler"
)

// Limits of a Page.
const (
	maxScript = 64 << 10  // bytes
	maxOutput = 256 << 10 // bytes between two reports; later lines are left out
	source    = "script.p"
)

// Report is a Page's Pleo after a piece of its time.
type Report struct {
	State     string          `json:"state"` // running, paused or off
	Why       string          `json:"why,omitempty"`
	Line      int             `json:"line,omitempty"` // from 1, before which a script is paused
	Function  string          `json:"function,omitempty"`
	Script    string          `json:"script,omitempty"` // sensors or main
	Output    string          `json:"output,omitempty"` // what scripts have printed since the last report, and what LifeOS warns of
	MS        int64           `json:"ms"`               // since power-on
	Variables []pawn.Variable `json:"variables,omitempty"`
	Curves    []*Curve        `json:"curves,omitempty"`
}

// Page is a Session with one script, whose text a person changes.
type Page struct {
	*Session
	out  strings.Builder
	left bool
}

// NewPage compiles a script and switches on a Pleo that has it: as its main script if it has a main function, and as its sensor script if it has on_sensor or
// on_property. The Page is nil if the script has errors, which are among the messages.
func NewPage(text []byte) (*Page, []compiler.Message, error) {
	if len(text) > maxScript {
		return nil, nil, fmt.Errorf("%d bytes of script, want at most %d", len(text), maxScript)
	}
	includes := lifeos.Includes()
	r := compiler.Compile(source, text, compiler.Options{Debug: 2, StackHeap: 128, Prefix: "default.inc", Include: []string{"."}, NoWarnings: []int{235},
		Defines: []compiler.Define{{Name: "TARGET", Value: 100}}, Open: func(name string) ([]byte, error) {
			if s, ok := includes[strings.TrimSuffix(strings.TrimPrefix(name, "./"), ".inc")]; ok {
				return []byte(s), nil
			}
			return nil, fs.ErrNotExist
		}})
	if r.Program == nil {
		return nil, r.Messages, nil
	}
	file, err := r.Program.Append(nil)
	if err != nil {
		return nil, r.Messages, err
	}
	card := pleosim.Card{}
	if r.Program.Main >= 0 {
		card["main.amx"] = file
	}
	for _, e := range r.Program.Publics {
		if e.Name == "on_sensor" || e.Name == "on_property" {
			card["sensors.amx"] = file
		}
	}
	if len(card) == 0 {
		return nil, r.Messages, errors.New("the script has neither main nor on_sensor")
	}
	p := &Page{}
	p.Session = New(Config{Card: card, Seed: 1, Log: p.log})
	return p, r.Messages, nil
}

func (p *Page) log(m lifeos.Message) {
	text := ""
	switch {
	case m.Type == lifeos.LogScript && m.Level == lifeos.Info:
		text = m.Text
	case m.Level <= lifeos.Warning, m.Type == lifeos.LogSound && m.Level <= lifeos.Info:
		text = m.String()
	default:
		return
	}
	if p.out.Len()+len(text) > maxOutput {
		p.left = true
		return
	}
	fmt.Fprintf(&p.out, "%8.2f s  %s\n", m.At.Seconds(), text)
}

// Keep sets the lines before which scripts pause, and the variables at whose changes they do.
func (p *Page) Keep(lines []int, watches []string) {
	p.points = slices.DeleteFunc(p.points, func(x *Point) bool { return !slices.Contains(lines, x.Line) && !slices.Contains(watches, x.Watch) })
	for _, l := range lines {
		if l > 0 && !slices.ContainsFunc(p.points, func(x *Point) bool { return x.Line == l }) {
			p.Mark(Point{File: source, Line: l})
		}
	}
	for _, w := range watches {
		if w != "" && !slices.ContainsFunc(p.points, func(x *Point) bool { return x.Watch == w }) {
			p.Mark(Point{Watch: w})
		}
	}
}

// Run lets so much time pass, or less until a script pauses.
func (p *Page) Run(ctx context.Context, pace Pace, limit time.Duration) Report {
	at, err := p.Go(ctx, pace, limit)
	r := Report{State: "running", MS: p.OS.Now().Milliseconds(), Curves: p.Curves()}
	switch {
	case errors.Is(err, ErrOff):
		r.State, r.Why = "off", err.Error()
	case err != nil:
		r.Why = err.Error()
	case at.Stopped:
		_, why, found := strings.Cut(at.Why, ": ")
		if !found {
			why = at.Why
		}
		r.State, r.Why, r.Line, r.Function, r.Script, r.Variables = "paused", why, at.Line, at.Function, at.Script, p.OS.Variables()
	}
	if p.left {
		p.left = false
		p.out.WriteString("[output left out]\n")
	}
	r.Output = p.out.String()
	p.out.Reset()
	return r
}
