package coreserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// The errors of a line that asks for too much.
var (
	errDevice  = errors.New("this robot cannot do that")
	errNoSpeed = fmt.Errorf("%w: a speed is only for a motor that moves to a position", robot.ErrRange)
	errNoTime  = fmt.Errorf("%w: speed:, time: and adaptive: are only for a motor", robot.ErrRange)
	errMixed   = fmt.Errorf("%w: a line writes slots or calls one method; send the other in a second line", robot.ErrName)
	errStep    = fmt.Errorf("%w: want steps that each move or set something", robot.ErrName)
	errManners = fmt.Errorf("%w: want the same speed: or time: for everything in a line; send the other in a second line", robot.ErrName)
)

// ask holds the request of a peer until it is answered: an order, and the statements that it was made of, if any. It is the sink of their writes
// and calls. A request of several steps is one ask after another:
//
//	do ──► ask ──post──► control loop ──► done ──► next ──► ask ──► ...  ──► Ended
//	         └── Reply        └── any other end, a refusal or a stop in between ──► Ended
type ask struct {
	s          *Server
	at         time.Duration
	underway   bool // its motion has begun
	order      control.Order
	statements []statement
	rest       [][]robot.Line // steps to come
	began      bool           // a step before it was answered
	stops      uint64         // Server.stops at the first step
}

// statement is one of a line.
type statement struct {
	robot.Line
	value  string             // the value read
	writes []state.Write      // the goals of the order from first on
	taken  func() robot.Value // what the statement's own slot reads as, when writes do
	first  int
	unit   float64 // how many units of the goals are one of the statement's own slot
}

// Bounds of an order; own defaults. Its text has at most as many lines.
const (
	maxSteps = 64
	maxLines = 256 // of all steps
)

// check returns what is wrong with an order that a peer made.
func check(o core.Order) error {
	lines := 0
	for _, step := range o.Steps {
		for i := range step {
			if err := step[i].Check(); err != nil {
				return err
			}
		}
		lines += len(step)
	}
	if len(o.Steps) == 0 || len(o.Steps) > maxSteps || lines > maxLines {
		return fmt.Errorf("%w: %d steps with %d lines, want 1 to %d with at most %d", robot.ErrRange, len(o.Steps), lines, maxSteps, maxLines)
	}
	return nil
}

// do runs an order, unless err says that it makes no sense: reads are answered at once, motions become one order of the loop for each step. An order
// with one step that makes no sense is refused before its first step begins.
func (s *Server) do(ctx context.Context, p corelink.Peer, request uint32, o core.Order, err error) {
	a := &ask{s: s, order: control.Order{Owner: owner(p), Request: request, For: o.Deadline()}}
	for i := len(o.Steps) - 1; i >= 0 && err == nil; i-- {
		a, err = a.step(ctx, o.Steps[i:])
		if err == nil && a.order.Kind == 0 && len(o.Steps) > 1 {
			err = errStep
		}
	}
	switch {
	case err != nil:
		s.refuse(ctx, a, codeOf(err), err.Error())
	case a.order.Kind != 0:
		s.post(ctx, p.ID, a)
	default:
		s.tell(ctx, p.ID, a.reply(&control.Result{Request: request}))
	}
}

// codeOf returns the code of a refusal.
func codeOf(err error) control.Code {
	switch {
	case errors.Is(err, state.ErrUnknown), errors.Is(err, state.ErrUnavailable):
		return control.Unmeasured
	case errors.Is(err, errDevice):
		return control.Unable
	}
	return control.Invalid
}

// step returns the ask for the first of steps, for the owner and the request of a.
func (a *ask) step(ctx context.Context, steps [][]robot.Line) (*ask, error) {
	b := &ask{s: a.s, rest: steps[1:], stops: a.stops, order: control.Order{Owner: a.order.Owner, Request: a.order.Request, For: a.order.For}}
	for _, l := range steps[0] {
		if err := b.add(ctx, l); err != nil {
			return b, err
		}
	}
	return b, nil
}

// next posts the step after a, which is done.
func (s *Server) next(ctx context.Context, a *ask) {
	b, err := a.step(ctx, a.rest)
	if b.began = true; err != nil {
		s.refuse(ctx, b, codeOf(err), err.Error())
		return
	}
	s.post(ctx, peerOf(a.order.Owner), b)
}

// add makes line a part of the order, or reads its value.
func (a *ask) add(ctx context.Context, line robot.Line) error {
	a.statements = append(a.statements, statement{Line: line, unit: 1})
	got, err := state.NewLive(a.s.cfg.Control.Board(), a).Do(ctx, line)
	switch {
	case err != nil:
		return err
	case a.s.stale(got.Value, got.At): // the measurement is old
		return fmt.Errorf("%s: %w: %s", line.Name, state.ErrUnavailable, noBody)
	case got.Value.Type != robot.None:
		a.statements[len(a.statements)-1].value = got.Value.String()
	}
	return nil
}

// Set is state.Sink. The value written is known when the control loop has answered.
func (a *ask) Set(writes []state.Write, taken func() robot.Value) (robot.Value, error) {
	st := &a.statements[len(a.statements)-1]
	if a.order.Kind != 0 && a.order.Kind != control.Set {
		return robot.Value{}, errMixed
	}
	st.writes, st.taken, st.first = writes, taken, a.order.N
	for _, w := range writes {
		if err := a.goal(st, &w); err != nil {
			return robot.Value{}, fmt.Errorf("%s: %w", w.Ref, err)
		}
	}
	return robot.Value{}, nil
}

// goal adds one write to the order.
func (a *ask) goal(st *statement, w *state.Write) error {
	part, ok := a.s.model.Slots[w.Ref.ID]
	within, _ := st.Within()
	switch {
	case !ok && w.Ref.Node.Endless() && w.Ref.Slot.Name == "turn":
		return fmt.Errorf("%w: a wheel takes a speed; use robot.go(metres) or robot.turn(radians) for a distance or an angle", errDevice)
	case !ok:
		return errDevice
	case a.s.model.Parts[part].Shared && (st.Speed != 0 || within != 0):
		return errNoTime
	case st.Speed != 0 && strings.HasSuffix(string(w.Ref.Unit()), "/s"):
		return errNoSpeed
	case a.order.N == control.MaxGoals:
		return fmt.Errorf("%w: want at most %d slots in a line", robot.ErrRange, control.MaxGoals)
	}
	if w.Ref.Slot.Name == "turn" {
		if r := a.s.slotOf(st.Name); r != nil && r != w.Ref {
			st.unit = 1 / (2 * math.Pi) // an angle is written as turns
		}
	}
	if speed := st.Speed * st.unit; a.order.N == 0 {
		a.order.Kind, a.order.Speed, a.order.Within = control.Set, speed, within
	} else if a.order.Speed != speed || a.order.Within != within {
		return errManners
	}
	a.order.Goals[a.order.N] = control.Goal{Slot: w.Ref.ID, Value: w.Value.Number}
	a.order.N++
	return nil
}

// slotOf returns the one slot that a name means, of a device the one that its val points to; nil if it means none, or several.
func (s *Server) slotOf(name string) *robot.Ref {
	target, err := s.model.Tree.Lookup(name)
	if err == nil && len(target.Refs) == 0 {
		target, err = s.model.Tree.Lookup(name + ".val")
	}
	if err != nil || len(target.Refs) != 1 {
		return nil
	}
	r := target.Refs[0]
	if r.Slot.Points != "" {
		return r.Node.Slot(r.Slot.Points)
	}
	return r
}

// Call is state.Sink. A method that takes its time ends when the peer hears Ended.
func (a *ask) Call(_ context.Context, r *robot.Ref, args []robot.Value) (robot.Value, error) {
	st := &a.statements[len(a.statements)-1]
	within, _ := st.Within()
	switch {
	case r.Interface.Name == "SoundBank" && r.Slot.Name == "play" && (a.order.Kind == 0 || a.order.Kind == control.Set):
		return robot.Value{}, a.goal(st, &state.Write{Ref: r, Value: args[0]}) // done at once, as a value is
	case !r.Node.Is("Mobile") || r.Interface.Name != "Mobile":
		return robot.Value{}, errDevice
	case a.order.Kind != 0:
		return robot.Value{}, errMixed
	case r.Slot.Name == "go":
		a.order.Kind, a.order.A = control.Go, args[0].Number
	case r.Slot.Name == "turn":
		a.order.Kind, a.order.A = control.Turn, robot.YawOfTurn(args[0].Number) // positive is to the right (GOSTAI-IF-15.2)
	case r.Slot.Name == "stop" && (st.Speed != 0 || within != 0):
		return robot.Value{}, errNoTime
	case r.Slot.Name == "stop":
		a.order.Kind = control.Stop
	default:
		return robot.Value{}, errDevice
	}
	a.order.Speed, a.order.Within = st.Speed, within
	return robot.Value{}, nil
}

// deliver sends all available results. It reports whether there were any, and whether more are due.
func (s *Server) deliver(ctx context.Context, now time.Duration) (answered, waiting bool) {
	late := s.late(now)
	for {
		r, ok := s.cfg.Control.Result()
		if !ok {
			break
		}
		answered = true
		k := due{r.Owner, r.Request}
		s.mu.Lock()
		a := s.due[k]
		if !r.Underway {
			delete(s.due, k)
		} else if a != nil {
			a.underway = true
		}
		s.mu.Unlock()
		if a != nil { // otherwise its peer has left
			s.took(ctx, a, &r)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range late {
		delete(s.due, k)
	}
	return answered, len(s.due) > 0
}

// took tells the peer of a what became of it, or begins its next step.
func (s *Server) took(ctx context.Context, a *ask, r *control.Result) {
	refused := r.Code != control.OK && r.Code != control.Ended
	more := len(a.rest) > 0 && !refused
	if r.Code != control.Ended && !a.began {
		reply := a.reply(r)
		reply.Underway = reply.Underway || more
		s.tell(ctx, peerOf(r.Owner), reply)
	}
	switch {
	case a.began && refused:
		s.refuse(ctx, a, r.Code, a.named(s.detail(r)))
	case r.Code == control.Ended:
		more = more && r.Outcome == motion.Done
		s.ended(ctx, a, r, !more)
	case r.Underway:
		return
	case a.began && !more:
		s.tell(ctx, peerOf(r.Owner), &corelink.Ended{Request: r.Request, Outcome: corelink.Done})
	}
	if more {
		s.next(ctx, a)
	}
}

// late lists the requests whose results were lost in a full ring. Call it before the results are taken: those that come later were not lost. A motion may
// last longer than any order waits: its end is late only when nothing moves.
func (s *Server) late(now time.Duration) (late []due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moving, known := false, false
	for k, a := range s.due {
		if now-a.at <= resultsDue {
			continue
		}
		if a.underway && !known {
			moving, known = s.moving(), true
		}
		if !a.underway || !moving {
			late = append(late, k)
		}
	}
	return late
}

// moving reports whether a motion of any part is under way.
func (s *Server) moving() bool {
	var r control.Report
	return s.cfg.Control.Report(&r) && slices.ContainsFunc(r.Parts[:len(s.model.Parts)], func(p control.PartReport) bool { return p.Outcome == motion.Running })
}

// ended tells the peer how its motion ended, if that is the end of its order. The ends of the robot's own methods are also sent to every peer, as events (GOSTAI-IF-15.3).
func (s *Server) ended(ctx context.Context, a *ask, r *control.Result, last bool) {
	m := &corelink.Ended{Request: r.Request, Outcome: r.Outcome.String(), X: finite(r.Pose.X), Y: finite(r.Pose.Y), Theta: finite(r.Pose.Theta)}
	if r.Outcome == motion.Stopped {
		m.Reasons = s.reasons(r.Stop)
	}
	method := ""
	switch a.order.Kind {
	case control.Go:
		method, m.Moved, m.Of, m.Unit = "go", finite(r.Moved), a.order.A, "m"
	case control.Turn:
		method, m.Moved, m.Of, m.Unit = "turn", -finite(r.Moved), -a.order.A, "rad"
	}
	if last {
		s.tell(ctx, peerOf(r.Owner), m)
	}
	if method == "" {
		return
	}
	e := control.Event{At: monoclock.Now(), Name: "robot.finished", N: 2, Numbers: [4]int64{milli(m.Moved), milli(m.Of)},
		Texts: [4]string{method, m.Outcome, strings.Join(m.Reasons, ", ")}}
	if m.Outcome != corelink.Done {
		e.Name = "robot.aborted"
	}
	s.emit(ctx, &e)
}

// milli returns thousandths.
func milli(v float64) int64 { return int64(math.Round(v * 1000)) }

// named puts the name of the one statement of a before what is wrong with it.
func (a *ask) named(detail string) string {
	if len(a.statements) == 1 {
		return a.statements[0].Name + ": " + detail
	}
	return detail
}

// refuse tells the peer of a that its order, or a later step of it, is not done.
func (s *Server) refuse(ctx context.Context, a *ask, code control.Code, detail string) {
	var m corelink.Message = &corelink.Reply{Request: a.order.Request, Code: code.String(), Detail: detail}
	if a.began {
		how := motion.Stopped
		if code == control.NotHeld {
			how = motion.Cancelled
		}
		m = &corelink.Ended{Request: a.order.Request, Outcome: how.String(), Reasons: []string{detail}}
	}
	s.tell(ctx, peerOf(a.order.Owner), m)
}

// reply is the answer to a, by its result.
func (a *ask) reply(r *control.Result) *corelink.Reply {
	if r.Code != control.OK {
		return &corelink.Reply{Request: r.Request, Code: r.Code.String(), Detail: a.named(a.s.detail(r))}
	}
	out := &corelink.Reply{Request: r.Request, Code: r.Code.String(), Underway: r.Underway, Lease: r.Lease}
	var values, notes []string
	for i := range a.statements {
		st := &a.statements[i]
		if st.taken != nil {
			for k := range st.writes {
				st.writes[k].Value.Number = r.Taken[st.first+k]
			}
			taken := st.taken()
			st.value = rounded(taken, 6)
			if limited(st.Value, taken) {
				notes = append(notes, fmt.Sprintf("%s: %s is beyond its range, taken %s", st.Name, st.Value, rounded(taken, 3)))
			}
		}
		if st.value != "" {
			values = append(values, st.value)
		}
		if note := st.short(a.s, r); note != "" && r.Underway {
			notes = append(notes, note)
		}
	}
	if r.Underway {
		notes = append(notes, a.state()...)
	}
	out.Value, out.Detail = strings.Join(values, "; "), strings.Join(notes, "; ")
	return out
}

// state says what about the robot itself a program should know that moves it: it may move, but not as one that is awake and on the floor.
func (a *ask) state() (words []string) {
	var now control.Report
	if !a.s.cfg.Control.Report(&now) {
		return nil
	}
	if now.Sleep.State.Asleep() {
		words = append(words, "the robot is asleep: its camera takes no pictures; wake it first if you need them")
	}
	if now.Supply.Has(body.OnCharger) && a.base() {
		words = append(words, "the robot is on its charger: if it drives off it charges no longer; bring it back when you have finished")
	}
	return words
}

// base reports whether the order moves the body as a whole.
func (a *ask) base() bool {
	if a.order.Kind == control.Go || a.order.Kind == control.Turn {
		return true
	}
	return slices.ContainsFunc(a.order.Goals[:a.order.N], func(g control.Goal) bool { return a.s.model.Parts[a.s.model.Slots[g.Slot]].Base })
}

// rounded writes v with so many significant digits.
func rounded(v robot.Value, digits int) string {
	switch v.Type {
	case robot.Float:
		return fmt.Sprintf("%.*g", digits, v.Number)
	case robot.List:
		items := make([]string, len(v.Items))
		for i, x := range v.Items {
			items[i] = rounded(x, digits)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return v.String()
}

// closeEnough is how far a value may differ from the requested one because a device has steps; own default, half a step of a light.
const closeEnough = 0.002

// limited reports whether taken differs from the requested value.
func limited(asked, taken robot.Value) bool {
	if taken.Type != robot.List {
		return taken.Type == robot.Float && math.Abs(asked.Number-taken.Number) > closeEnough
	}
	for i, x := range taken.Items {
		if asked.Type == robot.List {
			if limited(asked.Items[i], x) {
				return true
			}
		} else if limited(asked, x) {
			return true
		}
	}
	return false
}

// punctual is how much later than told is still in time: two periods of the loop; own default.
const punctual = 10 * time.Millisecond

// short says how the body's limits changed the motion of st; "" if they did not (GOSTAI-OPEN-03).
func (st *statement) short(s *Server, r *control.Result) string {
	within, exactly := st.Within()
	late, word := within+punctual, "time:"
	if !exactly {
		late, word = within*3/2+punctual, "adaptive:" // which is about
	}
	switch {
	case within > 0 && r.Homing:
		return fmt.Sprintf("%s%v counts from when the motor has found its zero, which it looks for first", word, within)
	case within > 0 && r.Takes > late:
		return fmt.Sprintf("%s%v is too short: at most speed and acceleration it takes %v", word, within, r.Takes.Round(time.Millisecond))
	case st.Speed == 0 || r.Speed == 0 || r.Speed >= st.Speed*st.unit:
		return ""
	}
	unit := "m"
	if slot := s.slotOf(st.Name); slot != nil && slot.Slot.Access == robot.ReadWrite {
		unit = string(slot.Unit())
	} else if strings.HasSuffix(st.Name, "turn") {
		unit = "rad"
	}
	return fmt.Sprintf("speed:%v is too fast: it moves at most at %.3g %s/s", st.Speed, r.Speed/st.unit, unit)
}

// detail says in words why an order was refused.
func (s *Server) detail(r *control.Result) string {
	device := ""
	if all := s.model.Tree.Actuators(); r.Actuator >= 0 && r.Actuator < len(all) {
		device = all[r.Actuator].Compact()
	}
	switch r.Code {
	case control.NotHeld:
		if r.By == 0 {
			return device + " was not claimed; claim it first"
		}
		fallthrough
	case control.Busy:
		return fmt.Sprintf("%s belongs to %s with priority %d; wait until it is free, or ask who runs that program", device, s.program(r.By), r.Priority)
	case control.Refused:
		if words := s.reasons(r.Stop); len(words) > 0 {
			return "the robot may not move: " + strings.Join(words, ", ") + "; " + r.Stop.Remedy()
		}
		return "the robot may not move"
	case control.Full:
		return "too many claims at once, or too many programs that ask for calm"
	case control.Gone:
		return "this claim of yours has ended; claim again"
	case control.Unable:
		return "this body cannot do that"
	case control.Unmeasured:
		return "it depends on a value that is not measured yet"
	}
	return fmt.Sprintf("want a legal change of sleep with its reason, or finite numbers, a way other than 0, and a deadline of up to %v", control.MaxFor)
}

// reasons says in words why the robot may not move.
func (s *Server) reasons(stop motion.Reason) []string {
	words := stop.Words()
	if h := s.noted(); h.By != "" && stop&motion.Halted != 0 {
		words[0] = h.Words() // halted is the first reason
	}
	return words
}
