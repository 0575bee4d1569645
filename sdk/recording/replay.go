package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/infra/api/robotpb"
	"kennel/infra/mcap"
	kennel "kennel/sdk/go"
)

// Order is one of a recording.
type Order struct {
	At      time.Duration // since the first one, by the robot's clock
	Program string        // that gave it
	Request *robotpb.OrderRequest
	Ended   *robotpb.Ended // nil: the recording ends before it
}

// Recording holds what a file says of a robot, and its orders.
type Recording struct {
	Thing, Species string
	Orders         []Order
	Cut            bool // the file ends before its end: it was not finished
}

// Read reads the orders of a recording. The error is mcap.ErrFormat for a file that is none.
func Read(in io.Reader) (Recording, error) {
	var out Recording
	r, err := mcap.NewReader(in)
	if err != nil {
		return out, err
	}
	known := map[uint64]int{} // in out.Orders, by number
	var first int64
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			out.Cut = true
			return out, nil
		case err != nil:
			return out, err
		}
		switch x := rec.(type) {
		case *mcap.Metadata:
			if x.Name == robotMetadata {
				out.Thing, out.Species = x.Values["thing"], x.Values["species"]
			}
		case *mcap.Message:
			if r.Channel(x.ChannelID).Topic != ordersTopic {
				continue
			}
			var m robotpb.OrderReport
			if err := proto.Unmarshal(x.Data, &m); err != nil {
				return out, fmt.Errorf("%w: %s: message %d: %w", mcap.ErrFormat, ordersTopic, x.Sequence, err)
			}
			if i, ok := known[m.Order]; ok && m.Ended != nil {
				out.Orders[i].Ended = m.Ended
			}
			if m.Ended != nil {
				continue
			}
			if len(out.Orders) == 0 {
				first = m.AtUs
			}
			known[m.Order] = len(out.Orders)
			out.Orders = append(out.Orders, Order{At: time.Duration(m.AtUs-first) * time.Microsecond, Program: m.Program,
				Request: &robotpb.OrderRequest{Steps: m.Steps, ForMs: m.ForMs}})
		}
	}
}

// Ran is how an order went when it was run again.
type Ran struct {
	Order
	Again   *robotpb.Ended // nil: it was refused
	Refused string         // why
	Differs string         // how it ended differently; "": as recorded
}

// Replay runs the orders again on r, at the times of the recording, and gives tell each one when it has ended, in the order of their beginnings. What they move is claimed for
// this program throughout, so that an order replaces the one before it as it did in the recording. It ends with the first error of the connection, or with ctx.
func Replay(ctx context.Context, r *kennel.Robot, orders []Order, tell func(Ran) error) error {
	if len(orders) == 0 {
		return nil
	}
	d, err := r.Describe(ctx)
	if err != nil {
		return err
	}
	mover := r.Mover
	if parts := moved(d, orders); len(parts) > 0 {
		lease, err := r.ClaimFor(ctx, 0, "replay of a recording", parts...)
		if err != nil {
			return err
		}
		defer func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = lease.Release(end) // a robot that is lost ends it by itself
		}()
		mover = lease.Mover
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	results := make([]chan Ran, len(orders))
	for i := range results {
		results[i] = make(chan Ran, 1)
	}
	wg.Go(func() {
		begun := time.Now()
		for i, o := range orders {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(begun.Add(o.At))):
			}
			accepted := make(chan struct{})
			var once sync.Once
			wg.Go(func() {
				defer once.Do(func() { close(accepted) })
				results[i] <- again(ctx, mover, o, func() { once.Do(func() { close(accepted) }) })
			})
			<-accepted // so that the next one comes after it
		}
	})
	for i := range results {
		select {
		case x := <-results[i]:
			if err := tell(x); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func again(ctx context.Context, m kennel.Mover, o Order, accepted func()) Ran {
	x := Ran{Order: o}
	ended, err := m.Order(ctx, o.Request, func(*robotpb.Progress) error { accepted(); return nil })
	var notDone *kennel.NotDone
	switch {
	case errors.As(err, &notDone):
		x.Again = notDone.Ended
	case err != nil:
		x.Refused = err.Error()
	default:
		x.Again = ended
	}
	x.Differs = differs(x)
	return x
}

// Tolerances of a way: what a body does twice is not the same to the last bit.
const (
	relative = 0.1
	absolute = 0.01 // m or rad
)

func differs(x Ran) string {
	switch {
	case x.Refused != "":
		return "refused: " + x.Refused
	case x.Ended == nil: // it is not known how it ended
		return ""
	case x.Ended.Outcome != x.Again.Outcome:
		return fmt.Sprintf("%s, not %s", x.Again.Words, x.Ended.Words)
	case math.Abs(x.Again.Moved-x.Ended.Moved) > max(absolute, relative*math.Abs(x.Ended.Moved)):
		return fmt.Sprintf("moved %.3g %s, not %.3g", x.Again.Moved, x.Again.Unit, x.Ended.Moved)
	}
	return ""
}

// moved returns the names of what orders move that can be claimed: all but the settings of a camera.
func moved(d *robotpb.Description, orders []Order) (names []string) {
	for _, o := range orders {
		for _, step := range o.Request.Steps {
			for _, s := range step.Statements {
				camera := func(p *robotpb.Part) bool { return slices.Contains(p.Interfaces, "VideoIn") && owns(p, s.Name) }
				if !slices.Contains(names, s.Name) && !slices.ContainsFunc(d.Parts, camera) {
					names = append(names, s.Name)
				}
			}
		}
	}
	return names
}

// owns reports whether name is a part's, or one of its slots or methods.
func owns(p *robotpb.Part, name string) bool {
	for _, own := range append([]string{p.Full, p.Compact, strings.TrimPrefix(p.Full, "robot.")}, p.Aliases...) {
		if rest, ok := strings.CutPrefix(name, own); own != "" && ok && (rest == "" || rest[0] == '.' && !strings.Contains(rest[1:], ".")) {
			return true
		}
	}
	return false
}

// Text returns an order as a person types it, its steps one after another.
func Text(q *robotpb.OrderRequest) string {
	var steps []string
	for _, step := range q.Steps {
		var all []string
		for _, s := range step.Statements {
			all = append(all, statement(s))
		}
		steps = append(steps, strings.Join(all, "; "))
	}
	return strings.Join(steps, ", then ")
}

func statement(s *robotpb.Statement) string {
	text := s.Name
	switch what := s.What.(type) {
	case *robotpb.Statement_Set:
		text += " = " + value(what.Set)
	case *robotpb.Statement_Call:
		var args []string
		for _, a := range what.Call.GetItems() {
			args = append(args, value(a))
		}
		text += "(" + strings.Join(args, ", ") + ")"
	}
	switch how := s.Manner.(type) {
	case *robotpb.Statement_Speed:
		return fmt.Sprintf("%s speed:%v", text, how.Speed)
	case *robotpb.Statement_TimeS:
		return fmt.Sprintf("%s time:%vs", text, how.TimeS)
	case *robotpb.Statement_AdaptiveS:
		return fmt.Sprintf("%s adaptive:%vs", text, how.AdaptiveS)
	}
	return text
}

func value(v *robotpb.Value) string {
	switch k := v.GetKind().(type) {
	case *robotpb.Value_Number:
		return fmt.Sprint(k.Number)
	case *robotpb.Value_Text:
		return fmt.Sprintf("%q", k.Text)
	case *robotpb.Value_List:
		var items []string
		for _, x := range k.List.GetItems() {
			items = append(items, value(x))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "nothing"
}
