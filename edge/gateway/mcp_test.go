package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"kennel/edge/motion"
)

// bearer adds a token to each request.
type bearer struct {
	token string
	http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// model returns a language model's client of the robot.
func (d *desk) model(t *testing.T, token string) (*mcp.ClientSession, error) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "model"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "https://" + d.addr + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: bearer{token, &http.Transport{TLSClientConfig: d.conf.Clone()}}}}, nil)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// TestModel: a language model sees the robot's parts, reads and moves it with the rights of its token; what is refused, or does not end as ordered, is
// an error with the reason.
func TestModel(t *testing.T) {
	d := newDesk(t)
	if _, err := d.model(t, "unknown"); err == nil {
		t.Error("a model without a token is served")
	}
	d.body.Measure("laser.distance", 0.5)
	use := func(s *mcp.ClientSession, tool string, args any) (failed bool, text string) {
		t.Helper()
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		b, err := json.Marshal(r.Content)
		if err != nil {
			t.Fatal(err)
		}
		return r.IsError, string(b)
	}
	eyes, err := d.model(t, "look")
	if err != nil {
		t.Fatal(err)
	}
	if failed, text := use(eyes, "describe", nil); failed || !strings.Contains(text, "robot.body.laser") {
		t.Errorf("%v %.300s", failed, text)
	}
	if failed, text := use(eyes, "read", map[string]any{"names": []string{"laser.distance"}}); failed || !strings.Contains(text, "0.5") {
		t.Errorf("%v %.300s", failed, text)
	}
	for tool, args := range map[string]map[string]any{"do": {"order": "robot.go(0.1)"}, "read": {"names": []string{}}} {
		if failed, text := use(eyes, tool, args); !failed || tool == "do" && !strings.Contains(text, "right_missing") {
			t.Errorf("%s: %v %s", tool, failed, text)
		}
	}
	hands, err := d.model(t, "all")
	if err != nil {
		t.Fatal(err)
	}
	for end, good := range map[motion.Outcome]bool{motion.Done: true, motion.Blocked: false} {
		n := len(d.motions()) + 1
		done := make(chan struct{})
		go func() {
			defer close(done)
			if failed, text := use(hands, "do", map[string]any{"order": "robot.go(0.1)", "for_ms": 5000}); failed == good {
				t.Errorf("ended %v: %v %s", end, failed, text)
			}
		}()
		d.moved(t, n)
		d.body.End(end, 0.05)
		<-done
	}
	if failed, text := use(eyes, "stop", nil); failed {
		t.Error(text)
	}
}
