package liveview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"log/slog"
	"math"
	"testing"
	"time"

	"kennel/infra/api/live"
	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

const rex = thing.ID("vic:00e20100")

// memory is a Store of one robot.
type memory struct {
	asked bool
	f     Frame
	err   error
}

func (m *memory) Ask(context.Context, thing.ID, time.Duration) (bool, error) {
	first := !m.asked
	m.asked = true
	return first, m.err
}

func (m *memory) Put(_ context.Context, _ thing.ID, f live.Frame) error {
	m.f = Frame{At: time.Unix(1795000000, 0), Age: 250 * time.Millisecond, Tree: f.Tree, Frame: f}
	return m.err
}
func (m *memory) Newest(context.Context, thing.ID) (Frame, error) { return m.f, m.err }
func (m *memory) Forget(context.Context, time.Duration) error     { return m.err }

func TestLook(t *testing.T) {
	m := &memory{}
	told := 0
	var broken error
	s := New(m, func(_ context.Context, id thing.ID, name string, payload []byte) error {
		l, err := live.ParseLook(payload)
		if err != nil || l.For() != AskFor || id != rex || name != topics.Live {
			t.Errorf("%s %s: %s, %v", id, name, payload, err)
		}
		told++
		return broken
	}, nil, slog.New(slog.DiscardHandler))
	r, err := s.Look(t.Context(), rex)
	if err != nil || told != 1 || r.Received != nil || r.Devices == nil {
		t.Fatalf("first look: %+v, %v, told %d times", r, err, told)
	}
	s.Handle(t.Context(), rex, []byte(`{"v":7}`), nil)
	if !m.f.At.IsZero() {
		t.Error("rubbish was kept")
	}
	s.Handle(t.Context(), rex, []byte(`{"v":1,"tree":{"body":"vector","nodes":[{"full":"robot.body","kind":"component"},{"full":"robot.body.laser","compact":"laser",
		"kind":"device","interface":"DistanceSensor","slots":[{"id":3,"name":"distance","type":"float","unit":"m","min":0},{"id":4,"name":"b","type":"bool"},
		{"id":5,"name":"t","type":"string"},{"id":6,"name":"u","type":"float"},{"id":7,"name":"n","type":"float"},{"id":8,"name":"i","type":"int"}]}]},
		"values":[{"slot":3,"age_ms":10,"infinite":1},{"slot":4,"age_ms":0,"number":1},{"slot":5,"age_ms":-1,"text":"Vector"},{"slot":7,"age_ms":1,"number":0.123456},
		{"slot":8,"age_ms":1,"number":3},{"slot":99,"age_ms":1,"number":3}],"motion":{"x":0.5,"parts":[{"name":"wheels","outcome":"done"}]}}`), nil)
	r, err = s.Look(t.Context(), rex)
	if err != nil || told != 1 || r.Received == nil || r.AgeMS != 250 || r.Body != "vector" || len(r.Devices) != 2 || r.Motion == nil || r.Motion.X != 0.5 {
		t.Fatalf("%+v, %v, told %d times", r, err, told)
	}
	want := []struct {
		text string
		age  int64
	}{{"inf", 260}, {"true", 250}, {"Vector", -1}, {"not known", -1}, {"0.1235", 251}, {"3", 251}}
	for i, slot := range r.Devices[1].Slots {
		age := int64(-1)
		if slot.AgeMS != nil {
			age = *slot.AgeMS
		}
		if slot.String() != want[i].text || age != want[i].age || slot.Known != (i != 3) {
			t.Errorf("slot %+v is %q of %d ms, want %+v", slot, slot, age, want[i])
		}
	}
	if b, err := json.Marshal(r.Devices[1].Slots[0]); err != nil || string(b) != `{"name":"distance","type":"float","unit":"m","min":0,"known":true,"value":"inf","age_ms":260}` {
		t.Errorf("%s, %v", b, err)
	}

	// A broker that is away leaves what is known; a store that is away does not.
	m.asked, broken = false, errors.New("no broker")
	if r, err := s.Look(t.Context(), rex); err != nil || r.Received == nil || told != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	m.err = errors.New("no database")
	if _, err := s.Look(t.Context(), rex); !errors.Is(err, m.err) {
		t.Errorf("%v, want %v", err, m.err)
	}
	s.Handle(t.Context(), rex, []byte(`{"v":1,"values":[]}`), nil) // said in the log
}

// TestDisplay: the display is seen while the owner allows it and while the picture is fresh. What is not allowed is not kept either.
func TestDisplay(t *testing.T) {
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 184, 96)), nil); err != nil {
		t.Fatal(err)
	}
	payload, err := live.Frame{Tree: &live.Tree{Body: "vector"}, Display: picture.Bytes()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		stored, shown func() (bool, error) // what the owner says when the frame comes, and when it is shown
		age           time.Duration
		kept, seen    bool
	}{
		"allowed":            {yes, yes, time.Second, true, true},
		"not allowed":        {no, yes, time.Second, false, false},
		"withdrawn":          {yes, no, time.Second, true, false},
		"not known":          {unknown, yes, time.Second, false, false},
		"not known any more": {yes, unknown, time.Second, true, false},
		"old":                {yes, yes, Fresh + time.Millisecond, true, false},
	} {
		m := &memory{}
		says := tc.stored
		s := New(m, func(context.Context, thing.ID, string, []byte) error { return nil }, func(_ context.Context, id thing.ID) (bool, error) {
			if id != rex {
				t.Errorf("%s: asked for %s", name, id)
			}
			return says()
		}, slog.New(slog.DiscardHandler))
		s.Handle(t.Context(), rex, payload, nil)
		if kept := m.f.Frame.Display != nil; kept != tc.kept || m.f.Frame.Tree == nil {
			t.Errorf("%s: kept %v, want %v", name, kept, tc.kept)
		}
		says, m.f.Age = tc.shown, tc.age
		r, err := s.Look(t.Context(), rex)
		if err != nil || bytes.Equal(r.Display, picture.Bytes()) != tc.seen || r.Received == nil {
			t.Errorf("%s: %d bytes are seen, %v", name, len(r.Display), err)
		}
	}
	s := New(&memory{}, nil, nil, slog.New(slog.DiscardHandler))
	if s.mayShow(t.Context(), rex) {
		t.Error("a service without a rule shows the display")
	}
}

func yes() (bool, error)     { return true, nil }
func no() (bool, error)      { return false, nil }
func unknown() (bool, error) { return true, errors.New("no database") }

// TestGone: a missing device keeps its place, and its values are unavailable, not just unknown (GOSTAI-OPEN-13).
func TestGone(t *testing.T) {
	node := func(full string) live.Node {
		return live.Node{Full: full, Kind: "device", Aliases: []string{"short"}, Slots: []live.Slot{{ID: 1, Name: "model", Type: "string"}, {ID: 2, Name: "val", Type: "float"}}}
	}
	text := "LM35"
	f := Frame{At: time.Unix(1795000000, 0), Age: 250 * time.Millisecond, Tree: &live.Tree{Nodes: []live.Node{node("robot"), node("robot.body"), node("robot.body.led[0]"), node("robot.body.leds"), node("robot.bodyguard")}},
		Frame: live.Frame{Values: []live.Value{{Slot: 1, AgeMS: -1, Text: &text}}, Gone: []live.Gone{{Full: "robot.body.led", ForMS: 5000, Why: "unplugged"}, {Full: "robot.body", ForMS: 1000, Why: "no body"}}}}
	want := []*live.Gone{nil, {Full: "robot.body", ForMS: 1250, Why: "no body"}, {Full: "robot.body.led", ForMS: 5250, Why: "unplugged"}, {Full: "robot.body", ForMS: 1250, Why: "no body"}, nil}
	for i, d := range robot(rex, f).Devices {
		if (d.Gone == nil) != (want[i] == nil) || d.Gone != nil && *d.Gone != *want[i] || len(d.Aliases) != 1 {
			t.Errorf("%s: gone %+v, want %+v", d.Full, d.Gone, want[i])
		}
		said := "not known"
		if want[i] != nil {
			said = "unavailable"
		}
		if d.Slots[0].Unavailable || d.Slots[0].String() != "LM35" || d.Slots[1].Unavailable != (want[i] != nil) || d.Slots[1].String() != said {
			t.Errorf("%s: %+v", d.Full, d.Slots)
		}
	}
}

// TestWhere: where a robot is, in words, and how far off its reckoning is.
func TestWhere(t *testing.T) {
	charger, cube := live.Place{-1.4, 0, 0}, live.Thing{At: live.Place{0.4, 0.3, 0}}
	plan := &live.Map{Charger: &charger}
	table := &live.Map{Shapes: []live.Shape{{Name: "cup"}, {Name: "cube"}, {}}}
	things := []live.Thing{{At: live.Place{1, 1}}, cube, {At: live.Place{0, -5}}}
	for _, tc := range []struct {
		want   string
		w      live.World
		moving bool
	}{
		{"1.40 m from the charger, facing east", live.World{Map: plan, Posture: onTreads}, false},
		{"1.4 m from the charger, facing north, blocked", live.World{Map: plan, Posture: onTreads, Pose: live.Place{0.04, 0, 1.4}, Blocked: true}, true},
		{"on the charger, facing south-west", live.World{Map: plan, Posture: onTreads, Contact: true, Pose: live.Place{-1.35, 0, -2.4}}, false},
		{"0.50 m from the cube, facing west, on its back", live.World{Map: table, Things: things, Posture: "on its back", Pose: live.Place{0, 0, 3.14}}, false},
		{"1.41 m from the cup, facing west", live.World{Map: table, Things: []live.Thing{things[0], {Gone: true}}, Posture: onTreads, Pose: live.Place{0, 0, -3.14}}, false},
		{"0.10 m from the nearest thing, facing east", live.World{Map: table, Things: things, Posture: onTreads, Pose: live.Place{0, -4.9, 0}}, false},
		{"0.25 m from where it began, facing south-east", live.World{Map: &live.Map{}, Posture: onTreads, Pose: live.Place{1, 0, -0.8}, Origin: live.Place{0.75, 0, 0}}, false},
		{"fallen, on its face", live.World{Map: plan, Posture: "on its face", Below: true}, false},
		{"0.00 m from where it began, facing east, in an unknown posture", live.World{Things: things}, false}, // a robot may say anything
	} {
		if got := (Robot{World: &tc.w, Motion: &live.Motion{Moving: tc.moving}}).Where(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	if got := (Robot{Motion: &live.Motion{}}).Where(); got != "" {
		t.Errorf("a real robot is %q", got)
	}
	for i := range 720 {
		if facing(float64(i-360)*0.1) == "" {
			t.Errorf("faces nowhere at %d", i)
		}
	}
	r := Robot{World: &live.World{Pose: live.Place{1, 1, 3.1}, Origin: live.Place{1, 0.5, math.Pi / 2}}, Motion: &live.Motion{X: 0.5, Y: 0.03, Theta: -math.Pi/2 - 3.1}}
	if at, off, turned, ok := r.Belief(); !ok || math.Abs(off-0.03) > 1e-9 || math.Abs(at[0]-0.97) > 1e-9 || math.Abs(turned-(2*math.Pi-6.2)) > 1e-9 {
		t.Errorf("it believes to be at %v, %v m and %v rad off, %v", at, off, turned, ok)
	}
	for _, r := range []Robot{{}, {World: &live.World{}}, {Motion: &live.Motion{}}} {
		if _, _, _, ok := r.Belief(); ok {
			t.Errorf("%+v has a belief that can be compared", r)
		}
	}
}

// TestWorldOfARobot: a world is shown once its map is known.
func TestWorldOfARobot(t *testing.T) {
	f := Frame{At: time.Unix(1795000000, 0), Tree: &live.Tree{Body: "vector"}, Frame: live.Frame{World: &live.World{Rev: "1"}}}
	if r := robot(rex, f); r.World != nil {
		t.Errorf("a world without a map: %+v", r.World)
	}
	f.Frame.World.Map = &live.Map{Name: "room"}
	if r := robot(rex, f); r.World == nil || r.World.Map.Name != "room" {
		t.Errorf("%+v", r.World)
	}
}
