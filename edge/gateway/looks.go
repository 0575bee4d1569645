package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/infra/api/robotpb"
)

func interfaces(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

// has reports whether the body has a part with an interface.
func has(t *corelink.Tree, name string) bool {
	for i := range t.Nodes {
		if slices.Contains(interfaces(t.Nodes[i].Interface), name) {
			return true
		}
	}
	return false
}

// owns reports whether name means a node, or a slot or method of it.
func owns(full, compact string, aliases []string, name string) bool {
	for _, own := range append([]string{full, compact, strings.TrimPrefix(full, "robot.")}, aliases...) {
		if rest, ok := strings.CutPrefix(name, own); own != "" && ok && (rest == "" || rest[0] == '.' && !strings.Contains(rest[1:], ".")) {
			return true
		}
	}
	return false
}

func (g *Gateway) describe(ctx context.Context, c caller, _ *robotpb.DescribeRequest) (*robotpb.Description, error) {
	t, err := g.core.Tree(ctx)
	if err != nil {
		return nil, err
	}
	hello, _ := g.core.link.Hello() // it just answered
	d := &robotpb.Description{Thing: string(g.Thing), Species: string(g.Thing.Species()), Name: g.cfg.Name(), Model: hello.Body.Model, Firmware: hello.Body.Firmware,
		Software: g.OS, Limits: &robotpb.Limits{RateHz: maxRate, LeaseMs: uint32(maxLease.Milliseconds()), Leases: maxLeases, Steps: maxSteps, Statements: maxStatements}}
	for _, r := range rights {
		if c.may(r) {
			d.Rights = append(d.Rights, r)
		}
	}
	for _, n := range t.Nodes {
		p := &robotpb.Part{Full: n.Full, Compact: n.Compact, Aliases: n.Aliases, Kind: n.Kind, Interfaces: interfaces(n.Interface), Actuator: n.Actuator, Bearing: n.Bearing}
		for _, s := range n.Slots {
			p.Slots = append(p.Slots, &robotpb.Slot{Name: s.Name, Type: s.Type, Unit: s.Unit, Min: s.Min, Max: s.Max})
		}
		d.Parts = append(d.Parts, p)
	}
	return d, nil
}

// present are the values of the moment, asked for once for all who read at that moment: no number of clients makes robotd answer more often.
type present struct {
	core *coreclient.Client

	mu   sync.Mutex
	at   time.Time
	last *corelink.Values
	busy chan struct{} // closed when the request under way is answered
	err  error
}

// fresh is how old the values of a reading may be; the bodies measure about so often.
const fresh = 10 * time.Millisecond

func (p *present) get(ctx context.Context) (*corelink.Values, error) {
	for {
		p.mu.Lock()
		if p.last != nil && time.Since(p.at) < fresh {
			defer p.mu.Unlock()
			return p.last, nil
		}
		if p.busy == nil {
			p.busy = make(chan struct{})
			go p.ask(p.busy)
		}
		busy := p.busy
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-busy:
		}
		p.mu.Lock()
		last, err := p.last, p.err
		p.mu.Unlock()
		if err != nil || last != nil {
			return last, err
		}
	}
}

func (p *present) ask(done chan struct{}) {
	v, err := p.core.Values(context.Background()) // which has a limit of its own
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.err, p.at, p.busy = v, err, time.Now(), nil
	close(done)
}

func (g *Gateway) read(ctx context.Context, _ caller, req *robotpb.ReadRequest) (*robotpb.Values, error) {
	if err := checkNames(req.Names); err != nil {
		return nil, err
	}
	values, err := g.lookup.slots(ctx, g.core.Client, req.Names)
	if err != nil {
		return nil, err
	}
	all, err := g.now.get(ctx)
	if err != nil {
		return nil, err
	}
	for i := range values {
		values[i].Take(all.Values, true)
	}
	return readings(core.Update{At: time.Duration(all.AtUS) * time.Microsecond, Values: values}, false), nil
}

// lookup remembers which slots names mean: programs ask for the same ones again and again.
type lookup struct {
	mu    sync.Mutex
	tree  *corelink.Tree // the names are of this one
	known map[string][]core.Value
}

const maxKnown = 256 // lists of names

// slots returns the slots that names mean, without values; the caller may change what is returned.
func (l *lookup) slots(ctx context.Context, c *coreclient.Client, names []string) ([]core.Value, error) {
	t, err := c.Tree(ctx)
	if err != nil {
		return nil, err
	}
	key := strings.Join(names, "\x00")
	l.mu.Lock()
	if l.tree != t || len(l.known) >= maxKnown {
		l.tree, l.known = t, map[string][]core.Value{}
	}
	values, ok := l.known[key]
	l.mu.Unlock()
	if !ok {
		if values, err = c.Slots(ctx, names...); err != nil {
			return nil, err
		}
		l.mu.Lock()
		if l.tree == t {
			l.known[key] = values
		}
		l.mu.Unlock()
	}
	return slices.Clone(values), nil
}

func checkNames(names []string) error {
	if len(names) == 0 || len(names) > maxNames {
		return invalid("names: %d, want 1 to %d names of slots or parts", len(names), maxNames)
	}
	return nil
}

// readings returns an update as a message.
func readings(u core.Update, changes bool) *robotpb.Values {
	out := &robotpb.Values{AtUs: u.At.Microseconds(), Missed: u.Missed}
	for i := range u.Values {
		v := &u.Values[i]
		r := &robotpb.Reading{Part: v.Device, Slot: v.Slot.Name, Unit: v.Slot.Unit, Changed: changes && v.Changed, AgeUs: -1}
		if v.Value != nil {
			r.AgeUs = v.Value.AgeMS * 1000
			if v.Value.AgeMS < 0 {
				r.AgeUs = -1
			}
			r.Value = reading(v)
		}
		out.Readings = append(out.Readings, r)
	}
	return out
}

func reading(v *core.Value) *robotpb.Value {
	if n, ok := v.Number(); ok {
		return &robotpb.Value{Kind: &robotpb.Value_Number{Number: n}}
	}
	if v.Value.Text != nil {
		return &robotpb.Value{Kind: &robotpb.Value_Text{Text: *v.Value.Text}}
	}
	return nil
}
