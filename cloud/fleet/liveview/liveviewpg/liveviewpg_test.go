package liveviewpg_test

import (
	"reflect"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview/liveviewpg"
	"kennel/infra/api/live"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

func TestFrames(t *testing.T) {
	pool := pgtest.New(t)
	s := liveviewpg.New(pool)
	number := func(v float64) live.Frame { return live.Frame{V: 1, Values: []live.Value{{Slot: 1, Number: &v}}} }
	put := func(f live.Frame) {
		t.Helper()
		if err := s.Put(t.Context(), rex, f); err != nil {
			t.Fatal(err)
		}
	}
	// received makes the newest frame older, instead of waiting.
	received := func(ago time.Duration) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `UPDATE robot_look SET received = received - $1::interval, asked = asked - $1::interval`, ago); err != nil {
			t.Fatal(err)
		}
	}
	put(number(1)) // there is no look
	if f, err := s.Newest(t.Context(), rex); err != nil || !f.At.IsZero() {
		t.Fatalf("a frame that nobody asked for is kept: %+v, %v", f, err)
	}
	for i, want := range []bool{true, false} {
		if tell, err := s.Ask(t.Context(), rex, time.Minute); err != nil || tell != want {
			t.Fatalf("ask %d: %v, %v; want %v", i, tell, err, want)
		}
	}
	first := number(2)
	first.Display = []byte{0xff, 0xd8, 1}
	first.Tree = &live.Tree{Body: "vector", Nodes: []live.Node{{Full: "robot"}}}
	put(first)
	put(number(3)) // too soon
	f, err := s.Newest(t.Context(), rex)
	if err != nil || f.At.IsZero() || f.Age < 0 || f.Age > time.Minute || f.Tree == nil || f.Tree.Body != "vector" || *f.Frame.Values[0].Number != 2 || len(f.Frame.Display) != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	received(time.Hour)
	put(number(4))
	if f, err := s.Newest(t.Context(), rex); err != nil || f.Tree == nil || *f.Frame.Values[0].Number != 4 || f.Frame.Display != nil {
		t.Errorf("a frame without a tree: %+v, %v; want the tree of before, and no picture", f, err)
	}
	if tell, err := s.Ask(t.Context(), rex, time.Minute); err != nil || !tell {
		t.Errorf("ask after an hour: %v, %v", tell, err)
	}
	if err := s.Forget(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Newest(t.Context(), rex); err != nil || f.At.IsZero() {
		t.Errorf("what is looked at is forgotten: %+v, %v", f, err)
	}
	received(time.Hour)
	if err := s.Forget(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Newest(t.Context(), rex); err != nil || !f.At.IsZero() {
		t.Errorf("what nobody looks at is kept: %+v, %v", f, err)
	}
}

// TestPlan: the map of a world comes in some frames and belongs to all that name it.
func TestPlan(t *testing.T) {
	pool := pgtest.New(t)
	s := liveviewpg.New(pool)
	if _, err := s.Ask(t.Context(), rex, time.Minute); err != nil {
		t.Fatal(err)
	}
	room := &live.Map{Name: "room", Charger: &live.Place{0.5}}
	for i, tc := range []struct {
		world *live.World
		want  *live.Map
	}{
		{&live.World{Rev: "a"}, nil}, {&live.World{Rev: "a", Map: room}, room}, {&live.World{Rev: "a", Posture: "falling"}, room}, {&live.World{Rev: "b"}, nil}, {nil, nil}, {&live.World{Rev: "a"}, room},
	} {
		if _, err := pool.Exec(t.Context(), `UPDATE robot_look SET received = received - interval '1 minute'`); err != nil { // instead of waiting
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), rex, live.Frame{V: 1, World: tc.world}); err != nil {
			t.Fatal(err)
		}
		if i == 1 && tc.world.Map != room {
			t.Error("the caller's frame was changed")
		}
		var twice bool // what is written twice a second is the frame
		if err := pool.QueryRow(t.Context(), `SELECT coalesce(frame->'world' ? 'map', false) FROM robot_look`).Scan(&twice); err != nil || twice {
			t.Errorf("%d: the map is in the frame too: %v, %v", i, twice, err)
		}
		f, err := s.Newest(t.Context(), rex)
		if err != nil || (f.Frame.World == nil) != (tc.world == nil) {
			t.Fatalf("%d: %+v, %v", i, f, err)
		}
		if w := f.Frame.World; w != nil && (w.Posture != tc.world.Posture || !reflect.DeepEqual(w.Map, tc.want)) {
			t.Errorf("%d: %+v with the map %+v, want %+v", i, w, w.Map, tc.want)
		}
	}
}
