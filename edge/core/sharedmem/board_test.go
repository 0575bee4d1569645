package sharedmem_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/core/sharedmem"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// TestBoardIsWhole: readers of a board in shared memory who race with its writer see whole publications, in order.
func TestBoardIsWhole(t *testing.T) {
	tree, err := robot.Build("bench", robot.Frame{}, []robot.Part{{Path: "robot", Is: []string{"Mobile"}, Uses: map[string][]string{"Mobile": {"body.wheel"}}},
		{Path: "body.wheel[left]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}}, {Path: "body.wheel[right]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}},
		{Path: "body.laser", Is: []string{"DistanceSensor"}}})
	if err != nil {
		t.Fatal(err)
	}
	b := state.New(tree)
	mem, f, err := sharedmem.Make("test", b.SharedSize())
	if err == nil {
		err = b.Share(mem)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.SetMeasuring(true)
	memory, err := sharedmem.Map(f, state.MaxShared)
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.ReadShared(memory.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, name := range []string{"wheelL.turn", "wheelR.turn", "wheelL.speed", "wheelR.speed", "laser.distance"} {
		target, err := tree.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, target.Refs[0].ID)
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			got, last := make([]state.Sample, len(ids)), state.Sample{}
			for !done.Load() {
				s.Read(ids, got)
				for _, x := range got {
					if x != got[0] && !math.IsNaN(x.Value) || x.At < last.At {
						t.Errorf("%+v beside %+v, after %+v", x, got[0], last)
						return
					}
				}
				last = got[0]
			}
		})
	}
	for i := 1; i <= 300_000; i++ {
		now := time.Duration(i) * time.Millisecond
		for _, id := range ids {
			b.Set(id, float64(i), now)
		}
		b.Publish(now)
	}
	done.Store(true)
	wg.Wait()
}
