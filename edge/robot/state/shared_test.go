package state

import (
	"math"
	"testing"

	"kennel/edge/robot"
)

// share shares b's board and reads it as another program does.
func share(t testing.TB, b *bench) (*Shared, []byte) {
	t.Helper()
	mem := make([]byte, b.board.SharedSize())
	if err := b.board.Share(mem[:len(mem)-1]); err == nil {
		t.Error("shared in too little memory")
	}
	if err := b.board.Share(mem); err != nil {
		t.Fatal(err)
	}
	s, err := ReadShared(mem)
	if err != nil {
		t.Fatal(err)
	}
	b.board.SetMeasuring(true)
	return s, mem
}

// TestShared: every number of a tree reads in shared memory as it reads on the board: unknown, measured, derived from others, out of range, of a device that is gone.
func TestShared(t *testing.T) {
	b, live := newBench(t)
	b.set(t, "laser.distance", 0.4, b.now) // before it is shared
	s, _ := share(t, b)
	check := func(when string) (known int) {
		t.Helper()
		for _, r := range b.tree.Slots() {
			ids := []int{r.ID}
			number := r.Slot.Type == robot.Float || r.Slot.Type == robot.Int || r.Slot.Type == robot.Bool
			if want := number && r.Slot.Access.Holds() && r.Slot.Points == ""; s.Has(ids) != want {
				t.Errorf("%s: is on the board: %v, want %v", r, !want, want)
			}
			if !s.Has(ids) {
				continue
			}
			want, err := live.ReadTarget(robot.Target{Refs: []*robot.Ref{r}})
			got := make([]Sample, 1)
			s.Read(ids, got)
			switch {
			case err != nil && !math.IsNaN(got[0].Value):
				t.Errorf("%s: %s reads as %v, want %v", when, r, got[0], err)
			case err == nil && math.IsNaN(want.Value.Number) && math.IsNaN(got[0].Value): // as good as not known
			case err == nil && (got[0].Value != want.Value.Number || got[0].At != want.At):
				t.Errorf("%s: %s reads as %+v, want %v of %v", when, r, got[0], want.Value, want.At)
			case err == nil:
				known++
			}
		}
		return known
	}
	before := check("at first")
	for name, v := range map[string]float64{"wheelL.turn": 7.3, "wheelR.turn": -0.2, "headYaw.turn": 0.1, "wheelL.speed": 2, "laser.distance": math.Inf(1), "robot.body.head.eye[left].led.r": 0.2, "robot.body.head.eye[left].led.g": 0.9,
		"robot.body.head.eye[left].led.b": 0.4, "blob.ratio": 0.3, "blob.threshold": 0.2} {
		b.now += ms
		b.set(t, name, v, b.now)
	}
	all := check("measured")
	if all < before+9 {
		t.Errorf("%d numbers are known, %d before they were measured", all, before)
	}
	b.set(t, "blob.ratio", 0.1, b.now)
	b.set(t, "wheelL.turn", math.NaN(), b.now)
	check("changed")
	b.board.SetGone(b.tree.Root().Children()[0], "unplugged", b.now)
	if n := check("gone"); n >= before {
		t.Errorf("%d numbers are known of a body that is gone, %d before it was measured", n, before)
	}
	b.board.SetBack(b.tree.Root().Children()[0], b.now)
	check("back")
	b.board.SetMeasuring(false)
	for _, r := range b.tree.Slots() {
		if ids, got := []int{r.ID}, make([]Sample, 1); s.Has(ids) {
			if s.Read(ids, got); got[0].Known() && !math.IsNaN(got[0].Value) {
				t.Errorf("without a body %s reads as %+v", r, got[0])
			}
		}
	}
	for _, ids := range [][]int{{-1}, {len(b.tree.Slots())}} {
		if s.Has(ids) {
			t.Errorf("slot %v is on the board", ids)
		}
	}
}

// FuzzReadShared: memory that holds no board is refused, and a board that is accepted can be read.
func FuzzReadShared(f *testing.F) {
	b, _ := newBench(f)
	_, mem := share(f, b)
	f.Add(mem)
	f.Add(mem[:len(mem)-8])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, mem []byte) {
		s, err := ReadShared(mem)
		if err != nil {
			return
		}
		for id := range s.slots {
			if ids := []int{id}; s.Has(ids) {
				s.Read(ids, make([]Sample, 1))
			}
		}
	})
}
