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

	"kennel/edge/motion"
	"kennel/infra/api/robotpb"
)

// TestStates: whatever keeps the robot from moving, a program hears which and what to do, in the same words through every door (issue 32).
func TestStates(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	model, err := d.model(t, "all")
	if err != nil {
		t.Fatal(err)
	}
	doors := map[string]func() string{
		"gRPC": func() string {
			_, err := r.Do(as("all"), call("robot.go", 0.1))
			if err == nil {
				return ""
			}
			return err.Error()
		},
		"HTTPS":     func() string { _, body := d.post(t, "all", "do", `{"text":"robot.go(0.1)"}`); return body },
		"WebSocket": func() string { return d.ordered(t, `{"text":"robot.go(0.1)"}`) },
		"MCP": func() string {
			a, err := model.CallTool(t.Context(), &mcp.CallToolParams{Name: "do", Arguments: map[string]any{"order": "robot.go(0.1)"}})
			if err != nil || !a.IsError {
				return ""
			}
			return a.Content[0].(*mcp.TextContent).Text
		},
	}
	for _, state := range []struct {
		name   string
		begin  func()
		code   string
		reason string // each holds what to do after the semicolon
	}{
		{"picked up", func() { d.body.Forbid(motion.Lifted) }, "stopped", "it is lifted or has no grip; put it on the floor"},
		{"at a cliff", func() { d.body.Forbid(motion.Cliff) }, "stopped", "it sees a cliff; drive it away from the edge"},
		{"picked up at a cliff", func() { d.body.Forbid(motion.Cliff | motion.Lifted) }, "stopped", "it sees a cliff, it is lifted or has no grip; put it on the floor"},
		{"falling", func() { d.body.Forbid(motion.Falling) }, "stopped", "falling; wait until it lies still"},
		{"too busy", func() { d.body.Forbid(motion.Watchdog) }, "stopped", "its loop was late; try again"},
		{"not heard", func() { d.body.Forbid(motion.Link) }, "stopped", "its body is not heard; try again when its body answers"},
		{"held by a person", func() { d.body.Forbid(motion.Halted) }, "stopped", "halted; release it first"},
		{"held by a program", func() {
			d.body.Forbid(0)
			if _, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 60_000, Reason: "a dance"}); err != nil {
				t.Fatal(err)
			}
		}, "busy", "belongs to gateway: fighter"},
		{"without its core", func() { d.lose() }, "core_lost", ""},
	} {
		state.begin()
		for door, ask := range doors {
			if got := ask(); !strings.Contains(got, state.reason) || door != "gRPC" && !strings.Contains(got, state.code) || got == "" {
				t.Errorf("%s, by %s: %q, want %s and %q", state.name, door, got, state.code, state.reason)
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
