package gateway

import (
	"math"
	"testing"

	"kennel/edge/robot"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// FuzzOrder: whatever a program sends as an order is an order that robotd can read, or is refused with a kind and a code.
func FuzzOrder(f *testing.F) {
	for _, s := range []string{
		`{"text":"headPitch = 0.3 time:2s; robot.go(0.1)","for_ms":1000}`,
		`{"steps":[{"statements":[{"name":"robot.go","call":{"items":[{"number":0.1}]},"speed":0.1}]}]}`,
		`{"steps":[{"statements":[{"name":"led","set":{"list":{"items":[{"number":1},{"text":"x"},{"list":{}}]}},"time_s":-1}]}]}`,
		`{"steps":[{}]}`, `{"steps":[{"statements":[{"name":"x","set":{"number":"NaN"}}]}]}`, `{`, `[]`,
	} {
		f.Add([]byte(s))
	}
	x := unary[robotpb.OrderRequest, *robotpb.OrderRequest, *robotpb.Ended]("do", "", false, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parse(x, b)
		if err == nil {
			o, rerr := read(q.(*robotpb.OrderRequest))
			if err = rerr; err == nil {
				for _, step := range o.Steps {
					for _, l := range step {
						if l.Verb == robot.Get {
							continue
						}
						if cerr := l.Check(); cerr != nil {
							t.Errorf("%s: accepted, but robotd refuses it: %v", b, cerr)
						}
					}
				}
				return
			}
		}
		if err = known(err); errs.KindOf(err) == errs.Internal || errs.CodeOf(err) == "" {
			t.Errorf("%s: %v", b, err)
		}
	})
}

// TestStatement: what a program sends becomes the line that a person would type, and what makes no sense is refused.
func TestStatement(t *testing.T) {
	number := func(v float64) *robotpb.Value { return &robotpb.Value{Kind: &robotpb.Value_Number{Number: v}} }
	for want, s := range map[string]*robotpb.Statement{
		"headPitch = 0.3 time:2s":   {Name: "headPitch", What: &robotpb.Statement_Set{Set: number(0.3)}, Manner: &robotpb.Statement_TimeS{TimeS: 2}},
		"robot.go(0.1) speed:0.05":  {Name: "robot.go", What: &robotpb.Statement_Call{Call: &robotpb.List{Items: []*robotpb.Value{number(0.1)}}}, Manner: &robotpb.Statement_Speed{Speed: 0.05}},
		"headPitch = 1 adaptive:5s": {Name: "headPitch", What: &robotpb.Statement_Set{Set: number(1)}, Manner: &robotpb.Statement_AdaptiveS{AdaptiveS: 5}},
	} {
		l, err := statement(s)
		if err != nil || l.String() != want {
			t.Errorf("%v, %v, want %s", l.String(), err, want)
		}
	}
	for name, s := range map[string]*robotpb.Statement{
		"nothing":      {Name: "headPitch"},
		"not a number": {Name: "headPitch", What: &robotpb.Statement_Set{Set: number(math.NaN())}},
		"no value":     {Name: "headPitch", What: &robotpb.Statement_Set{Set: &robotpb.Value{}}},
		"no name":      {What: &robotpb.Statement_Set{Set: number(1)}},
		"slow":         {Name: "headPitch", What: &robotpb.Statement_Set{Set: number(1)}, Manner: &robotpb.Statement_Speed{Speed: -1}},
		"late":         {Name: "headPitch", What: &robotpb.Statement_Set{Set: number(1)}, Manner: &robotpb.Statement_TimeS{TimeS: 3601}},
	} {
		if l, err := statement(s); errs.KindOf(known(err)) != errs.Invalid {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}
