package state

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"kennel/edge/robot"
)

// Write is a value for a slot that holds one of its own.
type Write struct {
	Ref   *robot.Ref
	Value robot.Value
}

// Sink takes writes and calls: on a robot, the loop's mailbox. It only sees slots with a value of their own; slots that point to another
// (val, angle, the val of an RGBLed) are resolved before.
type Sink interface {
	// Set asks for all these values together, or for none if it fails. A sink that knows what is taken, the closest the device can do
	// (GOSTAI-IF-14.8), leaves it in each write and returns taken(); one that learns it later keeps both for then and returns nothing.
	Set(writes []Write, taken func() robot.Value) (robot.Value, error)
	// Call runs a method, or only begins it if its end is reported elsewhere.
	Call(ctx context.Context, r *robot.Ref, args []robot.Value) (robot.Value, error)
}

// Live reads, writes and calls the slots of a tree by name. It is safe for concurrent use as far as its sink is.
type Live struct {
	board *Board
	sink  Sink

	convert func(v robot.Value, format string) (robot.Value, error)
	mu      sync.Mutex // of images
	images  map[int]image
}

// image is a camera's image in another format, and which it was made of.
type image struct {
	of    *word
	value robot.Value
	err   error
}

// NewLive returns the live view of a board; writes go to sink.
func NewLive(board *Board, sink Sink) *Live {
	return &Live{board: board, sink: sink, images: map[int]image{}}
}

// Convert gives the function that makes a camera's image in another format, which camera.jpeg and its like read as (GOSTAI-IF-17.13). Call it
// before the first Read.
func (l *Live) Convert(f func(v robot.Value, format string) (robot.Value, error)) { l.convert = f }

// Reading is the value of a name.
type Reading struct {
	Value robot.Value     // of a group: the list of its members' values in their order, None for one not known
	At    time.Duration   // when it was measured, of a group the oldest; 0: it does not change, or the time is unknown
	Times []time.Duration // of each member of a group
}

// Read returns what name reads as: one slot's value, or a list for a group of several (GOSTAI-LOC-13).
func (l *Live) Read(name string) (Reading, error) {
	target, err := l.board.tree.Lookup(name)
	if err != nil {
		return Reading{}, err
	}
	return l.ReadTarget(target)
}

// ReadTarget is Read for a name that was looked up before. All its values are of the same moment.
func (l *Live) ReadTarget(target robot.Target) (Reading, error) {
	if len(target.Refs) == 0 {
		return Reading{}, fmt.Errorf("%w: %s is not a slot; want one, such as %s.val", robot.ErrName, target.Nodes[0].Full(), target.Nodes[0].Full())
	}
	buf := l.board.acquire()
	var snap *Snapshot
	if buf != nil {
		defer buf.release()
		snap = &buf.snap
	}
	var out Reading
	items := make([]robot.Value, len(target.Refs))
	for i, r := range target.Refs {
		v, at, err := l.read(r, target.Property, snap)
		if err != nil && len(target.Refs) == 1 {
			return Reading{}, err
		}
		if err != nil {
			v, at = robot.Value{}, 0
		}
		items[i] = v
		out.Times = append(out.Times, at)
		if i == 0 || at < out.At {
			out.At = at
		}
	}
	if len(items) == 1 {
		out.Value, out.Times = items[0], nil
		return out, nil
	}
	out.Value = robot.L(items...)
	return out, nil
}

func (l *Live) read(r *robot.Ref, property string, snap *Snapshot) (robot.Value, time.Duration, error) {
	if property != "" {
		return l.property(r, property, snap)
	}
	if !r.Slot.Access.Holds() {
		return robot.Value{}, 0, fmt.Errorf("%w: %s is a %s and has no value", robot.ErrType, r, r.Slot.Access)
	}
	if _, fixed := r.Fixed(); !fixed {
		if err := l.board.absent(r); err != nil {
			return robot.Value{}, 0, err
		}
	}
	return l.value(r, snap)
}

// property returns a fixed property, or one that is measured: inRange of a distance, and what the device declares.
func (l *Live) property(r *robot.Ref, name string, snap *Snapshot) (robot.Value, time.Duration, error) {
	if v, ok := r.Prop(name); ok {
		return v, 0, nil
	}
	if err := l.board.absent(r); err != nil {
		return robot.Value{}, 0, err
	}
	if name == "inRange" && r.Interface.Name == "DistanceSensor" {
		v, at, err := l.value(r, snap)
		return robot.B(err == nil && !math.IsInf(v.Number, 0)), at, err
	}
	for _, p := range r.Node.Slots() {
		if p.Property && p.Slot.Name == name && r.Slot.Name == "val" {
			return l.stored(p, snap)
		}
	}
	return robot.Value{}, 0, fmt.Errorf("%w: property %.40q of %s; every slot has rangemin, rangemax and unit", robot.ErrNotFound, name, r)
}

// derived reports whether value derives a slot from others.
func derived(r *robot.Ref) bool {
	switch name := r.Slot.Name; r.Interface.Name {
	case "RotationalMotor":
		return name == "angle"
	case "RGBLed":
		return name == "val"
	case "BlobDetector":
		return name == "visible"
	case "VideoIn":
		return robot.ImageFormat(name) != robot.FormatUnknown
	}
	return false
}

// value works out what a slot reads as. Slots that stand for others hold nothing of their own.
func (l *Live) value(r *robot.Ref, snap *Snapshot) (robot.Value, time.Duration, error) {
	if v, ok := r.Fixed(); ok {
		return v, 0, nil
	}
	n := r.Node
	switch {
	case r.Slot.Points != "":
		return l.value(n.Slot(r.Slot.Points), snap)
	case !derived(r):
		return l.stored(r, snap)
	case r.Interface.Name == "RotationalMotor":
		v, at, err := l.value(n.Slot("turn"), snap)
		if err != nil {
			return v, 0, err
		}
		return robot.F(wrap(n, v.Number*2*math.Pi)), at, nil
	case r.Interface.Name == "RGBLed":
		return l.strongest(n, snap)
	case r.Interface.Name == "BlobDetector":
		ratio, at, err := l.value(n.Slot("ratio"), snap)
		if err != nil {
			return ratio, 0, err
		}
		threshold, _, err := l.value(n.Slot("threshold"), snap)
		return robot.B(err == nil && ratio.Number >= threshold.Number), at, err
	default:
		return l.converted(r)
	}
}

// converted is the image of r's camera in the format that r is named after: made at most once a frame, however many read it.
func (l *Live) converted(r *robot.Ref) (robot.Value, time.Duration, error) {
	w := l.board.words[r.Node.Slot("val").ID].Load()
	switch {
	case w == nil:
		return robot.Value{}, 0, fmt.Errorf("%s: %w", r, ErrUnknown)
	case w.value.Format.Name == r.Slot.Name:
		return w.value, w.at, nil
	case l.convert == nil:
		return robot.Value{}, 0, fmt.Errorf("%s: %w: no converter of images", r, robot.ErrNotPresent)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	made, ok := l.images[r.ID]
	if !ok || made.of != w {
		made = image{of: w}
		made.value, made.err = l.convert(w.value, r.Slot.Name)
		l.images[r.ID] = made
	}
	if made.err != nil {
		return robot.Value{}, 0, fmt.Errorf("%s: %w", r, made.err)
	}
	return made.value, w.at, nil
}

func wrap(n *robot.Node, angle float64) float64 {
	if n.Endless() {
		return robot.WrapTurn(angle)
	}
	return robot.WrapPi(angle)
}

// strongest is the val of an RGBLed (GOSTAI-IF-24.4).
func (l *Live) strongest(n *robot.Node, snap *Snapshot) (robot.Value, time.Duration, error) {
	most, oldest := 0.0, time.Duration(math.MaxInt64)
	for _, c := range []string{"r", "g", "b"} {
		v, at, err := l.value(n.Slot(c), snap)
		if err != nil {
			return v, 0, err
		}
		most, oldest = max(most, v.Number), min(oldest, at)
	}
	return robot.F(most), oldest, nil
}

func (l *Live) stored(r *robot.Ref, snap *Snapshot) (robot.Value, time.Duration, error) {
	switch r.Slot.Type {
	case robot.Float, robot.Int, robot.Bool:
		if snap != nil {
			if s := snap.Samples[r.ID]; s.Known() {
				return robot.Value{Type: r.Slot.Type, Number: s.Value}, s.At, nil
			}
		}
	default:
		if w := l.board.words[r.ID].Load(); w != nil {
			return w.value, w.at, nil
		}
	}
	if r.Slot.Default.Type != robot.None {
		return r.Slot.Default, 0, nil
	}
	return robot.Value{}, 0, unknown{r}
}

// unknown is ErrUnknown of a slot. It makes its text when it is asked for: who reads all slots many times a second asks for none.
type unknown struct{ *robot.Ref }

func (e unknown) Error() string { return e.String() + ": " + ErrUnknown.Error() }
func (unknown) Unwrap() error   { return ErrUnknown }

// Write gives name a value and returns what its sink says was taken, so that a limit or the closest possible value shows. A group gives every
// member the
// same value, or with a list each its own, in the order in which it reads (GOSTAI-LOC-13).
func (l *Live) Write(name string, v robot.Value) (robot.Value, error) {
	target, err := l.board.tree.Lookup(name)
	if err != nil {
		return robot.Value{}, err
	}
	return l.WriteTarget(target, v)
}

// WriteTarget is Write for a name that was looked up before. Nothing is written if one of the values can be none of its slot.
func (l *Live) WriteTarget(target robot.Target, v robot.Value) (robot.Value, error) {
	refs := target.Refs
	if len(refs) == 0 || target.Property != "" {
		return robot.Value{}, fmt.Errorf("%w: %s: want a slot to write, such as val", robot.ErrName, target.Nodes[0].Full())
	}
	values := make([]robot.Value, len(refs))
	for i, r := range refs {
		values[i] = v
		if v.Type == robot.List && r.Slot.Type != robot.List {
			if len(v.Items) != len(refs) {
				return robot.Value{}, fmt.Errorf("%w: %d values for %d slots", robot.ErrRange, len(v.Items), len(refs))
			}
			values[i] = v.Items[i]
		}
		if r.Slot.Access != robot.ReadWrite {
			return robot.Value{}, fmt.Errorf("%w: %s is a %s", robot.ErrReadOnly, r, r.Slot.Access)
		}
		if _, fixed := r.Fixed(); fixed {
			return robot.Value{}, fmt.Errorf("%w: %s never changes", robot.ErrReadOnly, r)
		}
		if err := r.Slot.Allows(values[i]); err != nil {
			return robot.Value{}, fmt.Errorf("%s: %w", r, err)
		}
		if err := l.board.absent(r); err != nil {
			return robot.Value{}, err
		}
	}
	var writes []Write
	firsts, backs := make([]int, len(refs)), make([]func([]Write) robot.Value, len(refs))
	for i, r := range refs {
		w, back, err := l.resolve(r, values[i])
		if err != nil {
			return robot.Value{}, err
		}
		firsts[i], backs[i] = len(writes), back
		writes = append(writes, w...)
	}
	return l.sink.Set(writes, func() robot.Value {
		taken := make([]robot.Value, len(refs))
		for i, back := range backs {
			taken[i] = back(writes[firsts[i]:])
		}
		if len(taken) == 1 {
			return taken[0]
		}
		return robot.L(taken...)
	})
}

// resolve returns what has to be set for r to become v, and how to tell from what is taken of that what r becomes.
func (l *Live) resolve(r *robot.Ref, v robot.Value) ([]Write, func(taken []Write) robot.Value, error) {
	n := r.Node
	if v.Type == robot.Float || v.Type == robot.Int || v.Type == robot.Bool {
		v.Type, v.Number = r.Slot.Type, r.Range.Clamp(v.Number)
	}
	switch name := r.Slot.Name; {
	case r.Slot.Points != "":
		return l.resolve(n.Slot(r.Slot.Points), v)
	case name == "angle" && r.Interface.Name == "RotationalMotor":
		return l.resolveAngle(n, v.Number)
	case name == "turn" && r.Interface.Name == "RotationalMotor" && !n.Endless():
		v.Number = n.Slot("angle").Range.Clamp(v.Number*2*math.Pi) / (2 * math.Pi)
	case name == "val" && r.Interface.Name == "RGBLed":
		w, back := l.resolveRGB(n, v.Number)
		return w, back, nil
	}
	return []Write{{r, v}}, func(taken []Write) robot.Value { return taken[0].Value }, nil
}

// resolveAngle turns an angle into the absolute position that the motor is given. A wheel reads modulo 2π, and what is added to that moves it
// by as much, as in the standard's own example: wheel.val = wheel.val + d / wheelRadius.
func (l *Live) resolveAngle(n *robot.Node, angle float64) ([]Write, func([]Write) robot.Value, error) {
	turn := n.Slot("turn")
	to := angle
	if n.Endless() {
		buf := l.board.acquire()
		var s Sample
		if buf != nil {
			s = buf.snap.Samples[turn.ID]
			buf.release()
		}
		if !s.Known() {
			return nil, nil, fmt.Errorf("%s: angle of the wheel: %w", turn, ErrUnknown)
		}
		now := s.Value * 2 * math.Pi
		to = now + angle - robot.WrapTurn(now)
	}
	value := func(taken []Write) robot.Value { return robot.F(angle + taken[0].Value.Number*2*math.Pi - to) }
	return []Write{{turn, robot.F(to / (2 * math.Pi))}}, value, nil
}

// resolveRGB scales the three colours to the brightness v; black becomes white (GOSTAI-IF-24.4).
func (l *Live) resolveRGB(n *robot.Node, v float64) ([]Write, func([]Write) robot.Value) {
	colours := []string{"r", "g", "b"}
	scale, most := [3]float64{1, 1, 1}, 0.0
	for i, c := range colours {
		if s := l.board.Sample(n.Slot(c).ID); s.Known() {
			scale[i] = s.Value
			most = max(most, s.Value)
		}
	}
	if most <= 0 {
		scale, most = [3]float64{1, 1, 1}, 1
	}
	var writes []Write
	for i, c := range colours {
		writes = append(writes, Write{n.Slot(c), robot.F(scale[i] / most * v)})
	}
	return writes, func(taken []Write) robot.Value {
		return robot.F(max(taken[0].Value.Number, taken[1].Value.Number, taken[2].Value.Number))
	}
}

// Do runs a line: it reads, writes or calls. A name that ends at devices means their val (GOSTAI-IF-00c). It returns the value that was
// read, written or returned. The line's speed is passed to the sink.
func (l *Live) Do(ctx context.Context, line robot.Line) (Reading, error) {
	if line.Verb == robot.Call {
		v, err := l.Call(ctx, line.Name, line.Args...)
		return Reading{Value: v}, err
	}
	target, err := l.target(line.Name)
	if err != nil {
		return Reading{}, err
	}
	if line.Verb == robot.Put {
		v, err := l.WriteTarget(target, line.Value)
		return Reading{Value: v}, err
	}
	return l.ReadTarget(target)
}

// target resolves a line's name; a device means its val.
func (l *Live) target(name string) (robot.Target, error) {
	target, err := l.board.tree.Lookup(name)
	if err == nil && len(target.Refs) == 0 {
		target, err = l.board.tree.Lookup(name + ".val")
	}
	return target, err
}

// Call runs the method that name ends with, on each member of a group in turn. A group returns a list.
func (l *Live) Call(ctx context.Context, name string, args ...robot.Value) (robot.Value, error) {
	target, err := l.board.tree.Lookup(name)
	if err != nil {
		return robot.Value{}, err
	}
	if len(target.Refs) == 0 || target.Property != "" {
		return robot.Value{}, fmt.Errorf("%w: %s is not a method", robot.ErrName, name)
	}
	for _, r := range target.Refs {
		if r.Slot.Access != robot.Method {
			return robot.Value{}, fmt.Errorf("%w: %s is a %s, not a method", robot.ErrType, r, r.Slot.Access)
		}
		if len(args) != len(r.Slot.Args) {
			return robot.Value{}, fmt.Errorf("%w: %s takes %d arguments, got %d", robot.ErrType, r, len(r.Slot.Args), len(args))
		}
		for i, a := range r.Slot.Args {
			arg := robot.Slot{Name: a.Name, Type: a.Type}
			if err := arg.Allows(args[i]); err != nil {
				return robot.Value{}, fmt.Errorf("%s: %w", r, err)
			}
		}
		if err := l.board.absent(r); err != nil {
			return robot.Value{}, err
		}
	}
	results := make([]robot.Value, len(target.Refs))
	for i, r := range target.Refs {
		if results[i], err = l.sink.Call(ctx, r, args); err != nil {
			return robot.Value{}, fmt.Errorf("%s: %w", r, err)
		}
	}
	if len(results) == 1 {
		return results[0], nil
	}
	return robot.L(results...), nil
}
