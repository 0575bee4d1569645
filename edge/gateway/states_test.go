package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/infra/api/robotpb"
	"kennel/infra/testwait"
)

// doors are the ways by which a program gives an order, each with the answer as its program reads it.
func (d *desk) doors(t *testing.T) map[string]func(order string) string {
	t.Helper()
	r := d.dial(t)
	model, err := d.model(t, "all")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(string) string{
		"gRPC": func(order string) string {
			a, err := r.Do(as("all"), &robotpb.OrderRequest{Text: order})
			if err != nil {
				return err.Error()
			}
			b, err := protojson.Marshal(a)
			if err != nil {
				t.Error(err)
			}
			return string(b)
		},
		"HTTPS":     func(order string) string { _, body := d.post(t, "all", "do", `{"text":"`+order+`"}`); return body },
		"WebSocket": func(order string) string { return d.ordered(t, `{"text":"`+order+`"}`) },
		"MCP": func(order string) string {
			a, err := model.CallTool(t.Context(), &mcp.CallToolParams{Name: "do", Arguments: map[string]any{"order": order}})
			if err != nil {
				return err.Error()
			}
			return a.Content[0].(*mcp.TextContent).Text
		},
	}
}

// TestStates: whatever keeps the robot from moving, a program hears which and what to do, in the same words through every door (issue 32).
func TestStates(t *testing.T) {
	d := newDesk(t)
	r, doors := d.dial(t), d.doors(t)
	drive := "robot.go(0.1)"
	for _, state := range []struct {
		name   string
		begin  func()
		order  string
		code   string
		reason string // each holds what to do after the semicolon
	}{
		{"picked up", func() { d.body.Forbid(motion.Lifted) }, drive, "stopped", "it is lifted or has no grip; put it on the floor"},
		{"at a cliff", func() { d.body.Forbid(motion.Cliff) }, drive, "stopped", "it sees a cliff; drive it away from the edge"},
		{"picked up at a cliff", func() { d.body.Forbid(motion.Cliff | motion.Lifted) }, drive, "stopped", "it sees a cliff, it is lifted or has no grip; put it on the floor"},
		{"falling", func() { d.body.Forbid(motion.Falling) }, drive, "stopped", "falling; wait until it lies still"},
		{"too busy", func() { d.body.Forbid(motion.Watchdog) }, drive, "stopped", "its loop was late; try again"},
		{"not heard", func() { d.body.Forbid(motion.Link) }, drive, "stopped", "its body is not heard; try again when its body answers"},
		{"held by a person", func() { d.body.Forbid(motion.Halted) }, drive, "stopped", "halted; release it first"},
		{"held by a program", func() {
			d.body.Forbid(0)
			if _, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 60_000, Reason: "a dance"}); err != nil {
				t.Fatal(err)
			}
		}, drive, "busy", "belongs to gateway: fighter"},
		{"with a part gone", func() {
			head, err := d.body.Model().Tree.Lookup("head")
			if err != nil {
				t.Fatal(err)
			}
			d.body.Board().SetGone(head.Nodes[0], "unplugged", monoclock.Now())
		}, "headPitch = 0.3", "unavailable", "unavailable: unplugged"},
		{"without its core", func() { d.lose() }, drive, "core_lost", ""},
	} {
		state.begin()
		for door, ask := range doors {
			if got := ask(state.order); !strings.Contains(got, state.reason) || door != "gRPC" && !strings.Contains(got, state.code) || got == "" {
				t.Errorf("%s, by %s: %q, want %s and %q", state.name, door, got, state.code, state.reason)
			}
		}
	}
}

// TestLateForAMoment: an order that comes while the robot's loop is late begins once the loop is on time again.
func TestLateForAMoment(t *testing.T) {
	d := newDesk(t)
	d.body.Forbid(motion.Watchdog)
	told := make(chan string, 1)
	go func() { told <- d.doors(t)["gRPC"]("robot.go(0.1)") }()
	d.moved(t, 2) // the first attempt is refused, and so is the next
	d.body.Forbid(0)
	testwait.Until(t, patience, "the end", testwait.Holds(func() bool { d.body.End(motion.Done, 0.1); return len(told) > 0 }))
	if got := testwait.For(t, told, "the end"); !strings.Contains(got, "done") {
		t.Errorf("its end is %s", got)
	}
}

// TestCircumstances: a robot that is asleep, or on its charger, moves all the same, and says through every door what that means (issue 32).
func TestCircumstances(t *testing.T) {
	d := newDesk(t)
	moved := 0
	for _, state := range []struct {
		name, order, note string
		change            func(*control.Report)
	}{
		{"awake", "robot.go(0.1)", "", func(*control.Report) {}},
		{"asleep", "robot.go(0.1)", "the robot is asleep: its camera takes no pictures", func(r *control.Report) { r.Sleep.State = power.LightSleep }},
		{"on its charger", "robot.turn(1)", "the robot is on its charger: if it drives off it charges no longer", func(r *control.Report) {
			r.Sleep.State, r.Supply = power.Awake, body.OnCharger|body.Charging
		}},
	} {
		d.body.SetReport(state.change)
		for door, ask := range d.doors(t) {
			told := make(chan string, 1)
			go func() { told <- ask(state.order) }()
			moved++
			d.moved(t, moved)
			d.body.End(motion.Done, 0.1)
			got := testwait.For(t, told, "the end")
			type end struct{ Outcome, Note string }
			var a struct {
				end
				Ended *end // over a WebSocket it is one of several messages
			}
			err := json.NewDecoder(strings.NewReader(got)).Decode(&a)
			if a.Ended != nil {
				a.end = *a.Ended
			}
			if err != nil || a.Outcome != "done" || (state.note == "") != (a.Note == "") || !strings.HasPrefix(a.Note, state.note) {
				t.Errorf("%s, by %s: %s, %v; want it done with the note %q", state.name, door, got, err, state.note)
			}
		}
	}
}

// ordered gives an order over a WebSocket, and returns the refusal.
func (d *desk) ordered(t *testing.T, order string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "wss://"+d.addr+"/v1/order", &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: d.conf.Clone()}},
		Subprotocols: []string{"kennel.robot.v1", "kennel.bearer." + base64.RawURLEncoding.EncodeToString([]byte("all"))}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte(order)); err != nil {
		t.Fatal(err)
	}
	var last []byte
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			return string(last) + " " + err.Error()
		}
		if last = b; !json.Valid(b) {
			t.Errorf("no JSON: %s", b)
		}
	}
}
