package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/edge/gateway"
	"kennel/edge/motion"
	"kennel/infra/api/robotpb"
	"kennel/infra/api/status"
	"kennel/infra/testwait"
)

// status returns the gateway's lines of the robot's status.
func (d *desk) status() (m status.Message) {
	d.part.Fill(&m)
	return m
}

// TestUses: what each program did is written down with its outcome, also what it was refused; like calls within a minute are one use, a flood of orders does not push the
// others out, and all of it is on disk when the robot's programs end.
func TestUses(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	told := func(want status.Use) {
		t.Helper()
		testwait.Until(t, patience, fmt.Sprint(want), func() error {
			all := d.status().Uses
			if i := slices.IndexFunc(all, func(u status.Use) bool { want.At = u.At; return u == want }); i < 0 {
				return fmt.Errorf("not among %+v", all)
			}
			return nil
		})
	}
	for range 3 {
		if _, err := r.Do(as("talk"), &robotpb.OrderRequest{Text: "led[0].r = 1"}); err != nil {
			t.Error(err)
		}
	}
	told(status.Use{Program: "lamp", Call: "do", What: "led[0].r = 1", Outcome: "done", Times: 3})
	if _, err := r.Do(as("all"), &robotpb.OrderRequest{Text: `voice.say("a \"secret\"")`}); err == nil {
		t.Error("this body has a voice")
	}
	told(status.Use{Program: "square", Call: "do", What: `voice.say("…")`, Outcome: "invalid", Times: 1})
	n := len(d.motions()) + 1
	go func() {
		d.moved(t, n)
		d.body.End(motion.Blocked, 0.05)
	}()
	if _, err := r.Do(as("all"), &robotpb.OrderRequest{Text: "robot.go(0.1)", ForMs: 5000}); err != nil {
		t.Error(err)
	}
	told(status.Use{Program: "square", Call: "do", What: "robot.go(0.1)", Outcome: "blocked", Times: 1})
	if _, err := r.Claim(as("look"), &robotpb.ClaimRequest{Parts: []string{"headPitch"}, ForMs: 500}); err == nil {
		t.Error("a program that may look claims")
	}
	told(status.Use{Program: "eyes", Call: "claim", Outcome: "right_missing", Times: 1})
	if code, body := d.post(t, "all", "change", `{"settings":{"master_volume":"LOW","clock_24_hour":true}}`); code != 200 {
		t.Error(body)
	}
	told(status.Use{Program: "square", Call: "change", What: "clock_24_hour, master_volume", Outcome: "done", Times: 1})
	for i := range 100 {
		if _, err := r.Do(as("talk"), &robotpb.OrderRequest{Text: fmt.Sprintf("led[0].r = 0.%d", 101+i)}); err != nil {
			t.Fatal(err)
		}
	}
	told(status.Use{Program: "lamp", Call: status.OtherCalls, Times: 71})
	d.end()
	b, err := os.ReadFile(filepath.Join(d.dir, "data/kennel/program-uses.json"))
	if err != nil || !strings.Contains(string(b), `"blocked"`) || strings.Contains(string(b), "LOW") {
		t.Errorf("%s, %v", b, err)
	}
	if got := gateway.OutcomeOf(nil); got != "done" {
		t.Error(got)
	}
}
