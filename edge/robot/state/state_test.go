package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/robot"
)

const ms = time.Millisecond

// bench is a tree with its board; as a Sink it takes what is written, rounded to whole tenths as a coarse device would, and measures it at once.
type bench struct {
	tree  *robot.Tree
	board *Board
	now   time.Duration
	sets  int // times that something was set
	calls []string
	err   error
}

func (b *bench) Set(writes []Write, taken func() robot.Value) (robot.Value, error) {
	if b.err != nil {
		return robot.Value{}, b.err
	}
	b.sets++
	for i := range writes {
		w := &writes[i]
		if w.Value.Type == robot.String || w.Value.Type == robot.Bytes {
			b.board.SetValue(w.Ref.ID, w.Value, b.now)
			continue
		}
		w.Value.Number = math.Round(w.Value.Number*10) / 10
		b.board.Set(w.Ref.ID, w.Value.Number, b.now)
	}
	b.board.Publish(b.now)
	return taken(), nil
}

func (b *bench) Call(ctx context.Context, r *robot.Ref, args []robot.Value) (robot.Value, error) {
	b.calls = append(b.calls, fmt.Sprint(r, args))
	return robot.Value{}, errors.Join(b.err, ctx.Err())
}

func (b *bench) set(t *testing.T, name string, v float64, at time.Duration) {
	t.Helper()
	target, err := b.tree.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range target.Refs {
		b.board.Set(r.ID, v, at)
	}
	b.board.Publish(at)
}

func newBench(t testing.TB) (*bench, *Live) {
	t.Helper()
	tree, err := robot.Build("bench", robot.Frame{}, []robot.Part{
		{Path: "robot", Is: []string{"Identity", "Network", "Mobile"}, Fixed: map[string]robot.Value{"type": robot.S("wheeled")},
			Uses: map[string][]string{"Mobile": {"body.wheel"}}},
		{Path: "body.wheel[left]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Endless: true},
		{Path: "body.wheel[right]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Endless: true},
		{Path: "body.head.yaw", Is: []string{"RotationalMotor"}, Ranges: map[string]robot.Range{"angle": {Min: -1, Max: 1}}},
		{Path: "body.head.eye[left].led", Is: []string{"RGBLed"}}, {Path: "body.head.eye[right].led", Is: []string{"RGBLed"}},
		{Path: "body.laser", Is: []string{"DistanceSensor"}, Live: []string{"raw"}},
		{Path: "body.battery", Is: []string{"Battery"}, Fixed: map[string]robot.Value{"capacity": robot.F(0.32)}},
		{Path: "body.camera", Is: []string{"VideoIn"}, Has: []string{"quality", "gain", "jpeg", "rgb"}}, {Path: "body.camera.blob", Is: []string{"BlobDetector"}},
		{Path: "body.speaker", Is: []string{"AudioOut"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{tree: tree, board: New(tree), now: time.Second}
	return b, NewLive(b.board, b)
}

// TestRead: what slots read as, those that stand for others among them (GOSTAI-IF-00c,
// GOSTAI-IF-04.2, GOSTAI-IF-06.1, GOSTAI-IF-06.2, GOSTAI-IF-09.1, GOSTAI-IF-20.4, GOSTAI-IF-24.4,
// GOSTAI-IF-25.1, GOSTAI-LOC-13).
func TestRead(t *testing.T) {
	b, live := newBench(t)
	for _, name := range []string{"headYaw.val", "laser.val", "wheelL.speed", "battery.voltage", "robot.name", "camera.val", "blob.visible"} {
		if r, err := live.Read(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s before anything was measured: %v, %v", name, r, err)
		}
	}
	b.set(t, "wheelL.turn", 2.25, 10*ms)
	b.set(t, "wheelR.turn", -0.25, 20*ms)
	b.set(t, "headYaw.turn", 0.75, 30*ms)
	b.set(t, "wheel.speed", 3, 30*ms)
	b.set(t, "laser.distance", math.Inf(1), 40*ms)
	b.set(t, "ledL.r", 0.2, 50*ms)
	b.set(t, "ledL.g", 0.7, 51*ms)
	b.set(t, "ledL.b", 0, 52*ms)
	b.set(t, "blob.ratio", 0.02, 60*ms)
	const pi = math.Pi
	for _, tc := range []struct {
		name string
		want string
		at   time.Duration
	}{
		{"wheelL.turn", "2.25", 10 * ms},
		{"wheelL.val", fmt.Sprint(pi / 2), 10 * ms},
		{"wheelL.angle", fmt.Sprint(pi / 2), 10 * ms},
		{"wheelR.angle", fmt.Sprint(1.5 * pi), 20 * ms}, // a wheel: from 0
		{"headYaw.angle", fmt.Sprint(-pi / 2), 30 * ms}, // a joint: up to π
		{"headYaw.torque", "0", 0},
		{"wheel.turn", "[2.25, -0.25]", 10 * ms},
		{"wheel.speed", "[3, 3]", 30 * ms},
		{"laser.val", "+Inf", 40 * ms},
		{"laser.val->inRange", "false", 40 * ms},
		{"laser.val->unit", `"m"`, 0},
		{"headYaw.val->rangemax", "1", 0},
		{"ledL.val", "0.7", 50 * ms},
		{"blob.visible", "true", 60 * ms},
		{"blob.threshold", "0.01", 0},
		{"battery.remain", "NaN", 0},
		{"battery.capacity", "0.32", 0},
		{"robot.serial", `""`, 0},
		{"robot.kind", `"wheeled"`, 0},
		{"camera.gain", "1", 0},
		{"robot.body.head.val", "[" + fmt.Sprint(-pi/2) + ", 0.7, nothing]", 0}, // in a group, an unknown value reads as nothing
	} {
		r, err := live.Read(tc.name)
		if err != nil || r.Value.String() != tc.want || r.At != tc.at {
			t.Errorf("%s is %s at %v, %v; want %s at %v", tc.name, r.Value, r.At, err, tc.want, tc.at)
		}
	}
	if r, err := live.Read("wheel.turn"); err != nil || len(r.Times) != 2 || r.Times[0] != 10*ms || r.Times[1] != 20*ms {
		t.Errorf("times of a group: %+v, %v", r, err)
	}
	b.set(t, "blob.ratio", 0.005, 70*ms)
	if r, err := live.Read("blob.visible"); err != nil || r.Value.Number != 0 || r.Value.Type != robot.Bool {
		t.Errorf("a small blob: %v, %v", r, err)
	}
	for _, r := range b.tree.Slots() {
		if r.Property && r.Slot.Name == "raw" {
			b.board.Set(r.ID, 812, 80*ms)
			b.board.Publish(80 * ms)
		}
	}
	if r, err := live.Read("laser.val->raw"); err != nil || r.Value.Number != 812 || r.At != 80*ms {
		t.Errorf("a measured property: %v, %v", r, err)
	}
	for name, want := range map[string]error{
		"laser": robot.ErrName, "robot.go": robot.ErrType, "laser.val->colour": robot.ErrNotFound,
		"camera.wb": robot.ErrNotPresent, "leser": robot.ErrNotFound,
	} {
		if r, err := live.Read(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", name, r, err, want)
		}
	}
}

// TestWrite: limits show when the value is read back, a device takes the closest it can, groups fan
// out (GOSTAI-IF-00f, GOSTAI-IF-06.2, GOSTAI-IF-14.8, GOSTAI-IF-24.4, GOSTAI-LOC-13).
func TestWrite(t *testing.T) {
	b, live := newBench(t)
	b.set(t, "wheelL.turn", 2.2, 10*ms)
	b.set(t, "wheelR.turn", -0.2, 20*ms)
	const turn = 2 * math.Pi
	for _, tc := range []struct {
		name  string
		v     robot.Value
		taken string
		read  string // what it reads as then
		is    string
	}{
		{"headYaw.val", robot.F(7), "0.20*2π", "headYaw.turn", "0.2"}, // 1 rad is the limit: 0.159 turns, which the device rounds
		{"headYaw.turn", robot.F(-9), "-0.2", "headYaw.turn", "-0.2"}, // also in turns
		{"wheelL.angle", robot.F(0.2*turn + turn), "1.20*2π", "wheelL.turn", "3.2"},
		{"wheel.turn", robot.L(robot.F(1), robot.F(2)), "[1, 2]", "wheel.turn", "[1, 2]"},
		{"wheel.speed", robot.F(1.26), "[1.3, 1.3]", "wheel.speed", "[1.3, 1.3]"},
		{"ledL.val", robot.F(0.5), "0.5", "ledL.g", "0.5"}, // from black: white
		{"ledL.r", robot.F(9), "1", "ledL.val", "1"},
		{"ledL.val", robot.F(0.4), "0.4", "ledL.b", "0.2"}, // scaled
		{"led.val", robot.I(0), "[0, 0]", "led.val", "[0, 0]"},
		{"camera.quality", robot.I(250), "100", "camera.quality", "100"},
		{"robot.name", robot.S("Rex"), `"Rex"`, "robot.name", `"Rex"`},
		{"blob.threshold", robot.B(true), "1", "blob.threshold", "1"},
	} {
		taken, err := live.Write(tc.name, tc.v)
		got := taken.String()
		if tc.taken == fmt.Sprintf("%.2f*2π", taken.Number/turn) {
			got = tc.taken
		}
		if err != nil || got != tc.taken {
			t.Errorf("%s = %s took %s, %v; want %s", tc.name, tc.v, got, err, tc.taken)
		}
		if r, err := live.Read(tc.read); err != nil || r.Value.String() != tc.is {
			t.Errorf("after %s = %s, %s is %s, %v; want %s", tc.name, tc.v, tc.read, r.Value, err, tc.is)
		}
	}
	// The standard's own example moves a wheel by what is added to its val, although that reads modulo 2π.
	b.set(t, "wheelL.turn", -3.7, 30*ms)
	b.set(t, "wheelR.turn", 8.1, 30*ms)
	r, err := live.Read("wheel.val")
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Value.Items {
		r.Value.Items[i].Number += 4 * turn
	}
	if _, err := live.Write("wheel.val", r.Value); err != nil {
		t.Fatal(err)
	}
	if r, err := live.Read("wheel.turn"); err != nil || r.Value.String() != "[0.3, 12.1]" {
		t.Errorf("wheels at %s turns, %v; want four more than before", r.Value, err)
	}
	before, _ := live.Read("wheel.turn")
	for name, tc := range map[string]struct {
		v    robot.Value
		want error
	}{
		"laser.val":         {robot.F(1), robot.ErrReadOnly},
		"battery.remain":    {robot.F(1), robot.ErrReadOnly},
		"robot.type":        {robot.S("humanoid"), robot.ErrReadOnly},
		"robot.go":          {robot.F(1), robot.ErrReadOnly},
		"wheel.turn":        {robot.L(robot.F(1), robot.S("far")), robot.ErrType}, // nothing is written, the left wheel neither
		"wheel.speed":       {robot.L(robot.F(1), robot.F(2), robot.F(3)), robot.ErrRange},
		"wheelL.turn":       {robot.F(math.NaN()), robot.ErrRange},
		"wheelR.turn":       {robot.F(math.Inf(-1)), robot.ErrRange},
		"speaker.val":       {robot.F(1), robot.ErrType},
		"wheelL":            {robot.F(1), robot.ErrName},
		"wheelL.val->unit":  {robot.S("deg"), robot.ErrName},
		"robot.body.nobody": {robot.F(1), robot.ErrNotFound},
	} {
		if taken, err := live.Write(name, tc.v); !errors.Is(err, tc.want) {
			t.Errorf("%s = %s: %s, %v; want %v", name, tc.v, taken, err, tc.want)
		}
	}
	if after, _ := live.Read("wheel.turn"); after.Value.String() != before.Value.String() {
		t.Errorf("refused writes moved the wheels from %s to %s", before.Value, after.Value)
	}
	b.err = errors.New("the port is gone")
	for _, name := range []string{"wheelL.val", "ledL.val", "wheel.speed"} {
		if _, err := live.Write(name, robot.F(0.5)); !errors.Is(err, b.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The position of a wheel must be known before it can be moved by an angle.
	fresh, unknown := newBench(t)
	if _, err := unknown.Write("wheelL.angle", robot.F(1)); !errors.Is(err, ErrUnknown) {
		t.Errorf("a wheel nobody has seen: %v", err)
	}
	if _, err := unknown.Write("headYaw.angle", robot.F(0.5)); err != nil || fresh.board.Sample(0).Known() {
		t.Errorf("a joint nobody has seen: %v", err)
	}
}

// TestCall: methods with their arguments (GOSTAI-IF-15.1).
func TestCall(t *testing.T) {
	b, live := newBench(t)
	ctx := t.Context()
	if _, err := live.Call(ctx, "robot.go", robot.I(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Call(ctx, "turn", robot.F(-1)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(b.calls); got != "[robot.go [2] robot.turn [-1]]" {
		t.Error(got)
	}
	for name, args := range map[string][]robot.Value{
		"robot.go": nil, "robot.turn": {robot.S("left")}, "laser.val": nil, "robot.stop": nil, "robot": nil,
		"nobody.go": {robot.F(1)},
	} {
		if _, err := live.Call(ctx, name, args...); err == nil {
			t.Errorf("%s%v was called", name, args)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := live.Call(gone, "robot.go", robot.F(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose caller has left: %v", err)
	}
}

// TestDo: lines read, write and call (GOSTAI-OPEN-01); a device means its val (GOSTAI-IF-00c), and a group is written at once (GOSTAI-LOC-13).
func TestDo(t *testing.T) {
	b, live := newBench(t)
	for _, tc := range []struct {
		line, want string
		sets       int // times that the sink was asked
		err        error
	}{
		{"robot.body.head.yaw = 0", "0", 1, nil},
		{"headYaw = 7", "1.2566370614359172", 1, nil}, // its most, 1 (GOSTAI-IF-00f), in the tenths of a turn that it can do (GOSTAI-IF-14.8)
		{"headYaw", "1.2566370614359172", 0, nil},
		{"headYaw->rangemax", "nothing", 0, robot.ErrName},
		{"headYaw.val->rangemax", "1", 0, nil},
		{"led = [1, 0.5]", "[1, 0.5]", 1, nil},
		{"wheel.speed = 0.3", "[0.3, 0.3]", 1, nil},
		{"robot.go(2)", "nothing", 0, nil},
		{"robot.go(2, 3)", "nothing", 0, robot.ErrType},
		{"robot.go = 2", "nothing", 0, robot.ErrReadOnly},
		{"headYaw(1)", "nothing", 0, robot.ErrName},
		{"headYaw = \"up\"", "nothing", 0, robot.ErrType},
		{"battery.remain = 1", "nothing", 0, robot.ErrReadOnly},
		{"arm = 1", "nothing", 0, robot.ErrNotFound},
	} {
		line, err := robot.ParseLine(tc.line)
		if err != nil {
			t.Fatal(err)
		}
		before := b.sets
		if got, err := live.Do(t.Context(), line); got.Value.String() != tc.want || !errors.Is(err, tc.err) || b.sets-before != tc.sets {
			t.Errorf("%s: %s, %v, set %d times; want %s, %v, %d", tc.line, got.Value, err, b.sets-before, tc.want, tc.err, tc.sets)
		}
	}
	if got := fmt.Sprint(b.calls); got != "[robot.go [2]]" {
		t.Error(got)
	}
}

// TestIntroduce: a robot says who it is and where (GOSTAI-IF-01.1 to GOSTAI-IF-01.4, GOSTAI-IF-02.1).
func TestIntroduce(t *testing.T) {
	b, live := newBench(t)
	b.board.Introduce(Identity{Name: "Rex", Serial: "00e20100", IP: "192.0.2.7"}, 5*ms)
	for name, want := range map[string]string{"robot.name": `"Rex"`, "serial": `"00e20100"`, "robot.IP": `"192.0.2.7"`, "type": `"wheeled"`} {
		if r, err := live.Read(name); err != nil || r.Value.String() != want {
			t.Errorf("%s is %s, %v; want %s", name, r.Value, err, want)
		}
	}
	other, err := robot.Build("plain", robot.Frame{}, []robot.Part{{Path: "body.led", Is: []string{"Led"}}})
	if err != nil {
		t.Fatal(err)
	}
	New(other).Introduce(Identity{Name: "Rex"}, 5*ms) // a root without these slots
}

// TestConvertedImages: a camera's image in another format is a slot named after it, converted once a frame for all (GOSTAI-IF-17.13).
func TestConvertedImages(t *testing.T) {
	b, live := newBench(t)
	target, err := b.tree.Lookup("camera.val")
	if err != nil {
		t.Fatal(err)
	}
	shoot := func(data string, at time.Duration) {
		b.board.SetValue(target.Refs[0].ID, robot.Value{Type: robot.Bytes, Data: []byte(data), Format: robot.Format{Name: "jpeg"}}, at)
	}
	if _, err := live.Read("camera.rgb"); !errors.Is(err, ErrUnknown) {
		t.Errorf("before the first image: %v", err)
	}
	shoot("one", 10*ms)
	if _, err := live.Read("camera.rgb"); !errors.Is(err, robot.ErrNotPresent) {
		t.Errorf("without a converter: %v", err)
	}
	made := 0
	bad := errors.New("half an image")
	live.Convert(func(v robot.Value, format string) (robot.Value, error) {
		made++
		if string(v.Data) == "bad" {
			return robot.Value{}, bad
		}
		v.Format.Name, v.Data = format, append([]byte(format+" of "), v.Data...)
		return v, nil
	})
	for i, tc := range []struct{ shoot, read, want string }{
		{"", "camera.jpeg", "one"}, // as it is
		{"", "camera.rgb", "rgb of one"},
		{"", "camera.rgb", "rgb of one"},
		{"two", "camera.rgb", "rgb of two"},
		{"", "robot.body.camera.rgb", "rgb of two"},
	} {
		if tc.shoot != "" {
			shoot(tc.shoot, 20*ms)
		}
		if r, err := live.Read(tc.read); err != nil || string(r.Value.Data) != tc.want || r.At == 0 {
			t.Errorf("%d: %s is %q, %v; want %q", i, tc.read, r.Value.Data, err, tc.want)
		}
	}
	shoot("bad", 30*ms)
	for range 2 {
		if _, err := live.Read("camera.rgb"); !errors.Is(err, bad) {
			t.Errorf("an image that cannot be converted: %v", err)
		}
	}
	if made != 3 {
		t.Errorf("%d conversions of 3 images", made)
	}
	if _, err := live.Read("camera.nv12"); !errors.Is(err, robot.ErrNotPresent) {
		t.Errorf("a format this camera does not offer: %v", err)
	}
}

// TestLateReaderSeesAges: a value keeps the time of its measurement however late it is read, and is unknown again once forgotten.
func TestLateReaderSeesAges(t *testing.T) {
	b, _ := newBench(t)
	target, err := b.tree.Lookup("laser.distance")
	if err != nil {
		t.Fatal(err)
	}
	id := target.Refs[0].ID
	var snap Snapshot
	if b.board.Read(&snap) || b.board.Sample(id).Known() {
		t.Fatal("something was published before anything was")
	}
	b.board.Set(id, 0.5, 100*ms)
	for now := 105 * ms; now <= 200*ms; now += 5 * ms { // the loop continues, the sensor is slower
		b.board.Publish(now)
	}
	if !b.board.Read(&snap) || snap.At != 200*ms || snap.Seq != 20 {
		t.Fatalf("snapshot %d at %v", snap.Seq, snap.At)
	}
	if s := snap.Samples[id]; s.Value != 0.5 || s.Age(snap.At) != 100*ms || s.Age(time.Second) != 900*ms {
		t.Errorf("%+v, age %v", s, s.Age(snap.At))
	}
	b.board.Forget(id)
	b.board.Publish(205 * ms)
	if b.board.Sample(id).Known() || snap.Samples[id].Value != 0.5 {
		t.Error("a forgotten value is known, or a snapshot that was read has changed")
	}
	b.board.Set(-1, 1, ms) // a slot that the body lacks
	b.board.Set(1<<20, 1, ms)
	if b.board.Sample(-1).Known() || b.board.Sample(1<<20).Known() {
		t.Error("a slot that is none has a value")
	}
}

// TestSnapshotsAreWhole: readers who race with the writer see publications whole and in order, and never make it wait.
func TestSnapshotsAreWhole(t *testing.T) {
	b, _ := newBench(t)
	n := len(b.tree.Slots())
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var s Snapshot
			var last uint64
			for !done.Load() {
				if !b.board.Read(&s) {
					continue
				}
				if s.Seq < last {
					t.Errorf("publication %d after %d", s.Seq, last)
					return
				}
				last = s.Seq
				for _, x := range s.Samples {
					if x.Value != float64(s.Seq) || x.At != s.At {
						t.Errorf("publication %d holds %+v", s.Seq, x)
						return
					}
				}
			}
		})
	}
	const rounds = 2_000
	for i := 1; i <= rounds; i++ {
		now := time.Duration(i) * ms
		for id := range n {
			b.board.Set(id, float64(i), now)
		}
		b.board.Publish(now)
	}
	done.Store(true)
	wg.Wait()
	if s := b.board.Skipped(); s > rounds/2 {
		t.Errorf("%d of %d publications were left out", s, rounds)
	}
}

// TestSlowReaders: those who hold more buffers than there are cost publications, never more, and the next one has everything.
func TestSlowReaders(t *testing.T) {
	b, _ := newBench(t)
	var held []*buffer
	for i := 1; i <= 3*buffers; i++ {
		b.board.Set(0, float64(i), time.Duration(i)*ms)
		if b.board.Publish(time.Duration(i)*ms) != (i <= buffers) {
			t.Fatalf("publication %d with %d buffers held", i, len(held))
		}
		if i <= buffers {
			held = append(held, b.board.acquire())
		}
	}
	if got := b.board.Skipped(); got != 2*buffers || held[0].snap.Samples[0].Value != 1 {
		t.Errorf("%d left out; the oldest holds %v", got, held[0].snap.Samples[0])
	}
	held[0].release()
	if b.board.Set(1, 7, ms); !b.board.Publish(time.Second) || b.board.Sample(0).Value != 3*buffers || b.board.Sample(1).Value != 7 {
		t.Errorf("after one let go: %v, %v", b.board.Sample(0), b.board.Sample(1))
	}
}

// TestNoAllocation: neither the loop nor a reader with a buffer of its own allocates.
func TestNoAllocation(t *testing.T) {
	b, _ := newBench(t)
	var s Snapshot
	b.board.Publish(ms)
	b.board.Read(&s)
	if got := testing.AllocsPerRun(200, func() {
		b.board.Set(3, 1, ms)
		b.board.Publish(ms)
		b.board.Read(&s)
		b.board.Sample(3)
	}); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}

// BenchmarkPublish is the board's share of a step.
func BenchmarkPublish(b *testing.B) {
	tree := robot.New("bench")
	for i := range uint16(80) {
		if _, err := tree.Add(robot.Part{Path: fmt.Sprintf("body.wheel[%d]", i), Is: []string{"RotationalMotor"}}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := tree.Seal(); err != nil {
		b.Fatal(err)
	}
	board := New(tree)
	for b.Loop() {
		board.Set(3, 1, ms)
		board.Publish(ms)
	}
}
