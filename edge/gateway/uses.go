package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/robotpb"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// usesFile keeps what programs did. It goes with the user data.
const usesFile = "data/kennel/program-uses.json"

// Bounds of the log of uses; own defaults.
const (
	maxUses   = 256
	usesAPart = 30 // of one program within a minute that differ; what is more is one use without words
	maxWhat   = 120
	toldUses  = 8           // in a status
	usesEvery = time.Minute // the file is written, and the status told, at most so often
)

// uses is the log of what programs did, the newest last. Safe for concurrent use.
type uses struct {
	root *os.Root
	now  func() time.Time
	tell func() // the newest is to be told

	mu      sync.Mutex
	all     []status.Use
	changed bool      // since the file was written
	told    time.Time // the last time
}

func openUses(root *os.Root, now func() time.Time, tell func()) (*uses, error) {
	u := &uses{root: root, now: now, tell: tell}
	if err := robotfs.ReadJSON(root, usesFile, &u.all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.all = nil
		return u, fmt.Errorf("%s: %w", usesFile, err)
	}
	return u, nil
}

// note writes down one call. Calls of a program within a minute that are alike are one use.
func (u *uses) note(program, call, what, outcome string) {
	if r := []rune(what); len(r) > maxWhat {
		what = string(r[:maxWhat-1]) + "…"
	}
	now := u.now().UTC()
	x := status.Use{Program: program, Call: call, What: what, Outcome: outcome}
	u.mu.Lock()
	recent := len(u.all)
	for recent > 0 && now.Sub(u.all[recent-1].At) < time.Minute {
		recent--
	}
	like := func(o status.Use) bool {
		return o.Program == x.Program && o.Call == x.Call && o.What == x.What && o.Outcome == x.Outcome
	}
	i := slices.IndexFunc(u.all[recent:], like)
	if i < 0 {
		n := 0
		for _, o := range u.all[recent:] {
			if o.Program == program {
				n++
			}
		}
		if n >= usesAPart {
			x.Call, x.What, x.Outcome = status.OtherCalls, "", ""
			i = slices.IndexFunc(u.all[recent:], like)
		}
	}
	if i >= 0 {
		x = u.all[recent+i]
		u.all = slices.Delete(u.all, recent+i, recent+i+1)
	}
	x.Times, x.At = x.Times+1, now
	u.all = append(u.all, x)
	if n := len(u.all) - maxUses; n > 0 {
		u.all = slices.Delete(u.all, 0, n)
	}
	u.changed = true
	first := now.Sub(u.told) >= usesEvery || now.Before(u.told)
	if first {
		u.told = now
	}
	u.mu.Unlock()
	if first {
		u.tell()
	}
}

// list returns the newest n, the newest first.
func (u *uses) list(n int) []status.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := slices.Clone(u.all[max(0, len(u.all)-n):])
	slices.Reverse(out)
	return out
}

// save writes the file if something was noted since it was written, and tells.
func (u *uses) save() error {
	u.mu.Lock()
	if !u.changed {
		u.mu.Unlock()
		return nil
	}
	u.changed, u.told = false, u.now().UTC()
	all := slices.Clone(u.all)
	u.mu.Unlock()
	u.tell()
	b, err := json.Marshal(all)
	return errors.Join(err, u.root.MkdirAll("data/kennel", 0o700), robotfs.WriteFile(u.root, usesFile, b, 0o600))
}

// keepUses writes the log each minute, and at the end. A kill loses what was noted since.
func (g *Gateway) keepUses(ctx context.Context) error {
	tick := time.NewTicker(usesEvery)
	defer tick.Stop()
	for {
		var over bool
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		if err := g.used.save(); err != nil {
			g.Log.Warn("what programs did is not on disk", "file", usesFile, logging.Err, err)
		}
		if over {
			return nil
		}
	}
}

// Outcomes for Note, beside those of OutcomeOf.
const (
	Begun    = "begun"    // of a stream
	Answered = "answered" // a call whose answer says more
)

// Note writes down what a client did through a facade: a call, its text, and how it ended (OutcomeOf).
func (g *Gateway) Note(c Caller, call, what, outcome string) {
	g.used.note(c.c.Name, call, what, outcome)
}

// OutcomeOf returns how a call ended, for Note: "done", or the code of what was wrong.
func OutcomeOf(err error) string {
	switch code := errs.CodeOf(known(err)); {
	case err == nil:
		return "done"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return code
	}
}

// noted is x, of which each call is written down when it has ended; a stream, but for an order's, when it begins.
func (g *Gateway) noted(x call) call {
	if x.name == "renew" {
		return x // a claim that lasts
	}
	if f := x.unary; f != nil {
		x.unary = func(ctx context.Context, c caller, q proto.Message) (proto.Message, error) {
			a, err := f(ctx, c, q)
			outcome := OutcomeOf(err)
			if end, ok := a.(*robotpb.Ended); ok && err == nil {
				outcome = end.Outcome
			}
			g.used.note(c.Name, x.name, whatOf(q), outcome)
			return a, err
		}
	}
	if f := x.stream; f != nil {
		x.stream = func(ctx context.Context, c caller, q proto.Message, tell func(proto.Message) error) error {
			if _, ok := q.(*robotpb.OrderRequest); !ok {
				g.used.note(c.Name, x.name, whatOf(q), Begun)
				return f(ctx, c, q, tell)
			}
			outcome := ""
			err := f(ctx, c, q, func(m proto.Message) error {
				if p, ok := m.(*robotpb.Progress); ok && p.GetEnded() != nil {
					outcome = p.GetEnded().Outcome
				}
				return tell(m)
			})
			if outcome == "" {
				outcome = OutcomeOf(err)
			}
			g.used.note(c.Name, x.name, whatOf(q), outcome)
			return err
		}
	}
	return x
}

// quoted is a text in an order. People may have meant it for few ears.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// whatOf is a request in a few words.
func whatOf(q proto.Message) string {
	switch q := q.(type) {
	case *robotpb.OrderRequest:
		text := q.Text
		if o, err := read(q); err == nil {
			text = o.String()
		}
		return quoted.ReplaceAllString(text, `"…"`)
	case *robotpb.PlayRequest:
		return cmp.Or(q.GetClip(), q.GetTrigger(), q.GetMood())
	case *robotpb.SoundRequest:
		return q.GetName()
	case *robotpb.ClaimRequest:
		return join(q.Parts)
	case *robotpb.ChangeRequest: // their values may be personal
		return join(slices.Sorted(maps.Keys(q.Settings)))
	}
	return ""
}

func join(names []string) string { return strings.Join(names[:min(len(names), 8)], ", ") }
