package clip

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"kennel/edge/face"
)

func clipOf(t testing.TB, text string) *Clip {
	t.Helper()
	clips, err := ParseText([]byte("clip test\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return &clips[0]
}

const ms = time.Millisecond

// TestPlay: what a clip says of each part at a time, and when its keyframes fire.
func TestPlay(t *testing.T) {
	c := clipOf(t, `0 face eye_center_x=0
100 face face_center_x=20
0 head 20 over=100
50 head -10 over=100
0 lift 92 over=100
0 body STRAIGHT 100 for=50
100 body TURN_IN_PLACE 90 for=50
200 body -50 40 for=50
0 lights front=#ff0000 for=100
200 lights front=#0000ff for=50
40 sound a
60 event TAPPED_BLOCK
250 record`)
	p := NewPlayer(Vector, &Locks{}, 1)
	if err := p.Start(1000*ms, c, Options{Lift: 0.032}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	deg := func(rad float64) float64 { return -rad * 180 / math.Pi }
	for _, tc := range []struct {
		at                            int
		head, lift, speed, turn, x, r float64
		fired                         int
	}{
		{0, 0, 0.032, 0.1, 0, 0, 1, 0},
		{50, 10, 0.062, 0, 0, 10, 1, 1}, // half of a gentle motion is half of the way; the second motion of the head begins here
		{100, 0, 0.092, 0, math.Pi / 2, 20, 1, 1},
		{150, -10, 0.092, 0, 0, 20, 0.5, 0},
		{210, -10, 0.092, 0.04, -0.8, 20, 0, 0},
	} {
		fired := p.Step(time.Duration(1000+tc.at)*ms, &f, nil)
		got := []float64{deg(f.Head), f.Lift, f.Speed, f.Turn, float64(f.Face.Whole[face.CenterX]), float64(f.Lights[0][0]), float64(len(fired))}
		for i, want := range []float64{tc.head, tc.lift, tc.speed, tc.turn, tc.x, tc.r, float64(tc.fired)} {
			if math.Abs(got[i]-want) > 1e-6 {
				t.Errorf("%d ms: %v, value %d should be %v", tc.at, got, i, want)
			}
		}
		if f.Has != Display|BackpackLights|HeadMotor|LiftMotor|Wheels || p.Playing() != "test" {
			t.Errorf("%d ms: %v", tc.at, f.Has)
		}
	}
	fired := p.Step(1260*ms, &f, nil)
	if len(fired) != 2 || fired[0].Record == nil || fired[0].Late != 10*ms || fired[1].End != Finished || p.Playing() != "" || f.Has&Wheels == 0 || f.Speed != 0 || f.Turn != 0 || deg(f.Head) > -9.99 {
		t.Errorf("%+v %+v", fired, f)
	}
	if p.Step(1290*ms, &f, nil); f.Has != 0 {
		t.Errorf("after the end: %v", f.Has)
	}
}

// TestStandardNames: set points have the names of the structure tree and SI units.
func TestStandardNames(t *testing.T) {
	f := Frame{Has: AllParts, Head: 0.1, Lift: 0.05, Speed: 0.2, Turn: 1, Lights: [3][3]float32{{0, 0, 0}, {0, 0.5, 0}}}
	got := map[string]float64{}
	for _, s := range f.AppendSetPoints(nil) {
		got[s.Name] = s.Value
	}
	for name, want := range map[string]float64{"robot.body.head.pitch.val": 0.1, "robot.body.arm.z.val": 0.05, "robot.xSpeed": 0.2, "robot.yawSpeed": 1, "robot.body.led[1].g": 0.5, "robot.body.led[2].b": 0} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v %v", name, v, ok)
		}
	}
	if f.Has = Display; len(f.AppendSetPoints(nil)) != 0 || len(got) != 13 {
		t.Errorf("%v", got)
	}
}

// TestIgnored tracks neither lock nor move (VEC-TRG-07), and a clip that needs a locked part is refused as a whole (VEC-TRG-06).
func TestIgnored(t *testing.T) {
	c, locks := clipOf(t, "0 head 20 over=100\n0 lift 50 over=100\n0 body STRAIGHT 50 for=100\n"), &Locks{}
	held, err := locks.Take("a program", Command, HeadMotor|Wheels)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer(Vector, locks, 1)
	if err := p.Start(0, c, Options{Level: Command}); !errors.Is(err, ErrLocked) || locks.owner[5] != nil {
		t.Errorf("%v, lift %v", err, locks.owner[5])
	}
	if err := p.Start(0, c, Options{Level: Command, Ignore: HeadMotor | Wheels}); err != nil {
		t.Error(err)
	}
	var f Frame
	if p.Step(50*ms, &f, nil); f.Has != LiftMotor {
		t.Errorf("%v", f.Has)
	}
	p.Step(100*ms, &f, nil)
	if held.Release(); (*locks != Locks{}) {
		t.Error("a part is locked after the end")
	}
	// A more important owner takes one part: the clip stops as a whole, and its wheels too.
	if err := p.Start(200*ms, c, Options{Level: Behavior}); err != nil {
		t.Fatal(err)
	}
	p.Step(210*ms, &f, nil)
	if _, err := locks.Take("a program", Command, LiftMotor); err != nil {
		t.Fatal(err)
	}
	if fired := p.Step(220*ms, &f, nil); len(fired) != 1 || fired[0].End != Stopped || f.Has != Wheels || f.Speed != 0 {
		t.Errorf("%+v %v", fired, f.Has)
	}
	// A less important clip interrupts nothing, and a refused clip leaves the other one playing.
	if err := p.Start(300*ms, c, Options{Level: Command, Ignore: LiftMotor}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Level: Behavior, Ignore: LiftMotor}, {Level: Command}} {
		if err := p.Start(310*ms, c, o); !errors.Is(err, ErrLocked) || p.Playing() != "test" || p.lock.Parts() != HeadMotor|Wheels {
			t.Errorf("%v %v", err, p.lock.Parts())
		}
	}
}

// TestLocks: in random schedules no part has two owners, no owner loses a part to one of its own level or below, and what is released is free. Heavy form: one
// million steps.
func TestLocks(t *testing.T) {
	steps := 30_000
	if os.Getenv("KENNEL_SOAK") == "1" {
		steps = 1_000_000
	}
	type owner struct {
		lock  *Lock
		level Level
		parts Parts
	}
	r, locks := rand.New(rand.NewPCG(1, 2)), &Locks{}
	var owners []*owner // the model: what each one should have
	for step := range steps {
		if len(owners) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(owners))
			owners[i].lock.Release()
			owners = append(owners[:i], owners[i+1:]...)
		} else {
			level, parts := Level(r.IntN(3)), Parts(r.IntN(int(AllParts)+1))
			free := true
			for _, o := range owners {
				free = free && (o.parts&parts == 0 || o.level < level)
			}
			k, err := locks.Take("x", level, parts)
			if free != (err == nil) || err != nil && !errors.Is(err, ErrLocked) {
				t.Fatalf("step %d: free %v, %v", step, free, err)
			}
			if err == nil {
				for _, o := range owners {
					o.parts &^= parts
				}
				owners = append(owners, &owner{k, level, parts})
			}
		}
		taken := Parts(0)
		for _, o := range owners {
			got := o.lock.Parts()
			if got != o.parts || got&taken != 0 {
				t.Fatalf("step %d: an owner has %v, want %v; others have %v", step, got, o.parts, taken)
			}
			taken |= got
		}
		if len(owners) > 12 {
			owners[0].lock.Release()
			owners = owners[1:]
		}
	}
}

// TestHour: an hour of a looping clip, whose clock is the sound at 16,025 samples a second: each keyframe fires once a loop, at most a step late (VEC-AFF-22).
func TestHour(t *testing.T) {
	c := clipOf(t, "0 event a\n617 event b\n1234 lift 40\n")
	p := NewPlayer(Vector, &Locks{}, 1)
	if err := p.Start(0, c, Options{Loops: Forever}); err != nil {
		t.Fatal(err)
	}
	const rate, each = 16_025, 481 // samples, about 30 ms
	var f Frame
	var fired []Fired
	count, samples := 0, int64(0)
	for ; samples < 3600*rate; samples += each {
		now := SampleTime(samples, rate)
		fired = p.Step(now, &f, fired[:0])
		for _, x := range fired {
			due := time.Duration(count/2)*1234*ms + time.Duration(count%2)*617*ms
			if late := now - due; late < 0 || late > 31*ms || x.Late != late {
				t.Fatalf("event %d at %v: due %v, %v late", count, now, due, x.Late)
			}
			count++
		}
	}
	if want := 2*int(3600*time.Second/(1234*ms)) + 1; count != want && count != want+1 {
		t.Errorf("%d events, want %d", count, want)
	}
	if d := SampleTime(3600*rate*1000, rate); d != 3_600_000*time.Second {
		t.Errorf("a thousand hours are %v", d)
	}
	// A robot that was busy for long skips whole loops, and does not make up for them.
	if fired = p.Step(10*time.Hour, &f, nil); len(fired) > 4 {
		t.Errorf("%d events at once", len(fired))
	}
	if err := p.Start(10*time.Hour, c, Options{Loops: math.MaxInt}); err != nil {
		t.Fatal(err)
	}
	if fired = p.Step(10000*time.Hour, &f, nil); len(fired) > 5 || p.Playing() == "" {
		t.Errorf("%d events at once, %q plays", len(fired), p.Playing())
	}
	if err := p.Start(10000*time.Hour, c, Options{Loops: 3}); err != nil {
		t.Fatal(err)
	}
	if fired = p.Step(20000*time.Hour, &f, nil); len(fired) > 6 || fired[len(fired)-1].End != Finished {
		t.Errorf("%+v", fired)
	}
}

// TestDeterministic: the same seed and times give the same frames and sounds; other seeds others.
func TestDeterministic(t *testing.T) {
	c := clipOf(t, "0 head 10 over=100 vary=5\n0 sound a chance=0.3 | b chance=0.3\n200 head 0 over=50\n")
	play := func(seed uint64) (frames []Frame, all []Fired) {
		p := NewPlayer(Vector, &Locks{}, seed)
		if err := p.Start(0, c, Options{Loops: 20}); err != nil {
			t.Fatal(err)
		}
		for now := time.Duration(0); now < 8*time.Second; now += Step {
			var f Frame
			all = p.Step(now, &f, all)
			frames = append(frames, f)
		}
		return frames, all
	}
	f1, a1 := play(7)
	f2, a2 := play(7)
	f3, a3 := play(8)
	if !reflect.DeepEqual(f1, f2) || !reflect.DeepEqual(a1, a2) || reflect.DeepEqual(f1, f3) || reflect.DeepEqual(a1, a3) {
		t.Error("seeds")
	}
	sounds, silent, ends := 0, 0, 0
	for _, x := range a1 {
		switch {
		case x.End == Finished:
			ends++
		case len(x.Posts) > 1:
			t.Error("two sounds of one group")
		case len(x.Posts) == 1:
			sounds++
		default:
			silent++
		}
	}
	if sounds+silent != 20 || sounds < 6 || silent < 2 || ends != 1 { // 12 and 8 expected (VEC-AFF-09)
		t.Errorf("%d sounds, %d silent, %d ends", sounds, silent, ends)
	}
	for _, f := range f1 { // what varies keeps to the limits
		if up := -f.Head * 180 / math.Pi; up < -22 || up > 15.001 {
			t.Errorf("head at %v", up)
		}
	}
}

// TestLimits: a joint whose target varies never passes its limits.
func TestLimits(t *testing.T) {
	c := clipOf(t, "0 head 45 vary=60\n0 lift 92 vary=60\n100 head -22 vary=60\n100 lift 32 vary=60\n")
	p := NewPlayer(Vector, &Locks{}, 3)
	if err := p.Start(0, c, Options{Loops: 100}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	for now := time.Duration(0); p.Step(now, &f, nil) == nil || p.Playing() != ""; now += 10 * ms {
		if up := -f.Head * 180 / math.Pi; up < -22.001 || up > 45.001 || f.Lift < 0.032-1e-9 && f.Lift != 0 || f.Lift > 0.092+1e-9 {
			t.Fatalf("%v: %v degrees, %v m", now, up, f.Lift)
		}
	}
	if err := p.Start(0, clipOf(t, "0 head 46"), Options{}); !errors.Is(err, ErrClip) {
		t.Errorf("an absurd angle: %v", err)
	}
	if err := p.Start(0, clipOf(t, "0 event a"), Options{Loops: Forever}); !errors.Is(err, ErrLoops) {
		t.Errorf("a clip without time: %v", err)
	}
}

// TestBeat: a clip waits at its beat, and continues from there (VEC-AFF-16).
func TestBeat(t *testing.T) {
	c := clipOf(t, "0 head 0 over=10\n100 event DANCE_BEAT_SYNC\n100 head 20 over=100\n150 event TAPPED_BLOCK\n")
	p := NewPlayer(Vector, &Locks{}, 1)
	if err := p.Start(0, c, Options{}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	if fired := p.Step(130*ms, &f, nil); len(fired) != 1 {
		t.Errorf("%+v", fired)
	}
	if fired := p.Step(9000*ms, &f, nil); len(fired) != 0 || f.Head != 0 || p.Playing() == "" {
		t.Errorf("%+v, head %v", fired, f.Head)
	}
	p.Signal(9000 * ms)
	if fired := p.Step(9050*ms, &f, nil); len(fired) != 1 || math.Abs(f.Head*180/math.Pi+10) > 1e-6 {
		t.Errorf("%+v, head %v", fired, f.Head)
	}
	if fired := p.Step(9200*ms, &f, nil); len(fired) != 1 || fired[0].End != Finished {
		t.Errorf("%+v", fired)
	}
}

// TestKeepAlive: without a clip the eyes blink every 3 to 5 s, shut in 100 ms, dart by few pixels, and look at a face that is seen (part of VEC-FCE-02).
func TestKeepAlive(t *testing.T) {
	p := NewPlayer(Vector, &Locks{}, 5)
	var f Frame
	last, blinks, places := time.Duration(0), 0, map[float32]bool{}
	shut := false
	for now := time.Duration(0); now < 10*time.Minute; now += 10 * ms {
		p.Step(now, &f, nil)
		w := f.Face.Whole
		places[w[face.CenterX]] = true
		if x, y := w[face.CenterX], w[face.CenterY]; max(x, -x) > dartX || max(y, -y) > dartY || f.Has != 0 {
			t.Fatalf("%v: %v %v", now, x, y)
		}
		if is := w[face.ScaleY] < 0.2; is && !shut {
			if gap := now - last; blinks > 0 && (gap < 3*time.Second-10*ms || gap > 5*time.Second+10*ms) {
				t.Errorf("a blink after %v", gap)
			}
			last = now
			blinks++
			shut = true
		} else if !is {
			shut = false
		}
	}
	if blinks < 140 || blinks > 160 || len(places) < 200 {
		t.Errorf("%d blinks, %d places", blinks, len(places))
	}
	if open, closed := KeepAlive(5, 0, nil), blinkClose; open.Whole[face.ScaleY] < 0.9 || closed != 100*ms {
		t.Errorf("%v", open.Words())
	}
	p.Look(&[2]float32{12, -6})
	if p.Step(601*time.Second, &f, nil); f.Face.Whole[face.CenterX] != 12 || f.Face.Whole[face.CenterY] != -6 || f.Face.Left[face.HotSpotCenterX] <= 0 {
		t.Errorf("%v", f.Face.Words())
	}
	// A clip without a face leaves the eyes alive; one with a face has them for itself.
	p.Look(nil)
	if err := p.Start(602*time.Second, clipOf(t, "0 face sad\n9000 face sad"), Options{}); err != nil {
		t.Fatal(err)
	}
	p.Step(603*time.Second, &f, nil)
	was := f.Face
	for now := 603 * time.Second; now < 611*time.Second; now += 10 * ms {
		if p.Step(now, &f, nil); f.Face.Whole[face.ScaleY] < 0.9 {
			t.Fatal("a blink in a clip with a face")
		}
	}
	if p.Step(700*time.Second, &f, nil); f.Face.Left == was.Left {
		t.Error("the face stays after its clip")
	}
}

// TestAllocations: a step that fires nothing allocates nothing.
func TestAllocations(t *testing.T) {
	c := clipOf(t, "0 face happy\n5000 face sad\n0 head 20 over=5000\n0 lights front=#ff0000\n0 body STRAIGHT 10 for=5000")
	p := NewPlayer(Vector, &Locks{}, 1)
	if err := p.Start(0, c, Options{}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	now := time.Duration(0)
	if n := testing.AllocsPerRun(100, func() { now += ms; p.Step(now, &f, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPlay: a clip that Check accepts plays at any times from any posture without a panic, and no joint, wheel or light passes its limits.
func FuzzPlay(f *testing.F) {
	b, err := AppendText(nil, all)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b), uint64(1), 0.1, 30_000)
	f.Add("clip a\n0 body 24 100 for=500\n0 head 45 over=3 vary=60\n9 lift 92 vary=60\n20 return over=100\n30 event DANCE_BEAT_SYNC\n0 lights front=1,1,1 for=9\n400 lights back=0,1,0", uint64(2), math.NaN(), 700)
	f.Fuzz(func(t *testing.T, text string, seed uint64, head float64, micro int) {
		clips, err := ParseText([]byte(text))
		if err != nil {
			return
		}
		p, now := NewPlayer(Vector, &Locks{}, seed), time.Duration(0)
		for i := range clips {
			if err := p.Start(now, &clips[i], Options{Head: head, Lift: -head, Loops: 3}); err != nil {
				if !errors.Is(err, ErrClip) {
					t.Fatal(err)
				}
				continue
			}
			for range 50 {
				var f Frame
				now += time.Duration(micro) * time.Microsecond
				p.Step(now, &f, nil)
				p.Signal(now)
				checkFrame(t, &f)
			}
		}
	})
}

// checkFrame fails for a frame that no Vector should be given.
func checkFrame(t *testing.T, f *Frame) {
	t.Helper()
	const slack = 1e-9
	up, wheel := -f.Head*180/math.Pi, math.Abs(f.Speed)+math.Abs(f.Turn)*0.024
	switch {
	case f.Has&HeadMotor != 0 && !(up >= -22-slack && up <= 45+slack):
		t.Fatalf("head at %v degrees", up)
	case f.Has&LiftMotor != 0 && !(f.Lift >= 0.032-slack && f.Lift <= 0.092+slack):
		t.Fatalf("lift at %v m", f.Lift)
	case f.Has&Wheels != 0 && f.Turn == 0 && !(wheel <= 0.22+slack), f.Speed != 0 && !(wheel <= 0.22+slack):
		t.Fatalf("a wheel at %v m/s", wheel)
	case f.Speed == 0 && math.Abs(f.Turn) > 2*math.Pi+slack, f.Face.Check() != nil:
		t.Fatalf("turn %v rad/s, face %v", f.Turn, f.Face.Check())
	}
	for _, l := range f.Lights {
		for _, v := range l {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("lights %v", f.Lights)
			}
		}
	}
}

// BenchmarkFrame: one step of a clip and its face, as a robot shows 30 a second.
func BenchmarkFrame(b *testing.B) {
	c := clipOf(b, "0 face happy\n5000 face angry\n0 head 20 over=5000\n0 lights front=#ff0000\n0 body STRAIGHT 10 for=5000")
	p, d := NewPlayer(Vector, &Locks{}, 1), face.NewDrawer(face.Standard)
	if err := p.Start(0, c, Options{Loops: Forever}); err != nil {
		b.Fatal(err)
	}
	var f Frame
	var picture face.Picture
	b.ReportAllocs()
	for now := time.Duration(0); b.Loop(); now += Step {
		p.Step(now, &f, nil)
		d.Draw(&picture, &f.Face, face.Teal)
	}
}

// TestMoves: each keyframe of a joint is one Move, which says where it ends and how long it takes, in every loop again.
func TestMoves(t *testing.T) {
	clips, err := ParseText([]byte("clip a\n0 head 18 over=100\n200 head -9 over=150\n0 lift 40 over=60"))
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer(Vector, &Locks{}, 1)
	if err := p.Start(0, &clips[0], Options{Loops: 2}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	var head, lift []Move
	for now := time.Duration(0); now < 690*time.Millisecond; now += Step {
		p.Step(now, &f, nil)
		if len(head) == 0 || f.HeadMove != head[len(head)-1] {
			head = append(head, f.HeadMove)
		}
		if len(lift) == 0 || f.LiftMove != lift[len(lift)-1] {
			lift = append(lift, f.LiftMove)
		}
	}
	up, down := -18*math.Pi/180, 9*math.Pi/180
	near := func(got, want []Move) bool {
		return slices.EqualFunc(got, want, func(a, b Move) bool { return a.N == b.N && a.Takes == b.Takes && math.Abs(a.To-b.To) < 1e-9 })
	}
	if want := []Move{{1, up, 100e6}, {2, down, 150e6}, {3, up, 100e6}, {4, down, 150e6}}; !near(head, want) {
		t.Errorf("head %v, want %v", head, want)
	}
	if want := []Move{{1, 0.04, 60e6}, {2, 0.04, 60e6}}; !near(lift, want) {
		t.Errorf("lift %v, want %v", lift, want)
	}
}

// TestFrameClip: a frame says which clip's pictures are over the face and at which time of the clip, also in a loop and while it waits for a beat; none for a clip without a display, and none after it.
func TestFrameClip(t *testing.T) {
	all, err := ParseText([]byte("clip a\n0 face happy\n0 sprites x\n300 event DANCE_BEAT_SYNC\n400 face sad\nclip b\n0 head 10 over=300\n"))
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	p := NewPlayer(Vector, &Locks{}, 1)
	var f Frame
	check := func(now time.Duration, c *Clip, at time.Duration) {
		t.Helper()
		if p.Step(now, &f, nil); f.Clip != c || f.At != at {
			t.Errorf("at %v: %v at %v, want %v at %v", now, f.Clip, f.At, c, at)
		}
	}
	if err := p.Start(100*ms, &all[0], Options{Loops: 2}); err != nil {
		t.Fatal(err)
	}
	check(70*ms, &all[0], -30*ms)
	check(220*ms, &all[0], 120*ms)
	check(600*ms, &all[0], 300*ms) // it waits
	p.Signal(700 * ms)
	check(730*ms, &all[0], 330*ms)
	check(810*ms, &all[0], 10*ms)
	p.Stop(820 * ms)
	check(830*ms, nil, 0)
	if err := p.Start(900*ms, &all[1], Options{}); err != nil {
		t.Fatal(err)
	}
	check(930*ms, nil, 0)
}
