package look

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"kennel/certs/thing"
	"kennel/cloud/api/live"
	"kennel/cloud/api/topics"
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
	}, slog.New(slog.DiscardHandler))
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
		{"slot":8,"age_ms":1,"number":3},{"slot":99,"age_ms":1,"number":3}],"motion":{"x":0.5,"treads":"done"}}`), nil)
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
