package robotapp

import (
	"strings"
	"syscall"
	"testing"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
)

// TestHeldRobotStaysHeld: what keeps a robot halted outlives a robotd that dies: head and lift do not look for their zeros then. A Resume of a peer
// lifts a peer's halt and not a person's hold, which its release lifts.
func TestHeldRobotStaysHeld(t *testing.T) {
	for _, tc := range []struct {
		name      string
		halt      func(c *peer)
		why       string           // the word for it
		powerless corelink.Message // lifts nothing; nil: there is no such message
		lift      func(c *peer)
	}{
		{
			"a person's hold",
			func(c *peer) {
				if r := c.ask(func(n uint32) corelink.Message {
					return &corelink.Hold{Request: n, By: "op@example.org", Reason: "its wheel is off"}
				}); r.Code != "ok" {
					c.t.Fatalf("hold: %+v", r)
				}
			},
			"held by op@example.org because its wheel is off", &corelink.Resume{},
			func(c *peer) {
				if r := c.ask(func(n uint32) corelink.Message { return &corelink.Unhold{Request: n} }); r.Code != "ok" {
					c.t.Errorf("release: %+v", r)
				}
			},
		},
		{"a peer's halt", func(c *peer) { c.send(&corelink.Halt{Reason: "test"}) }, "halted", nil, func(c *peer) { c.send(&corelink.Resume{}) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.powerOn()
			p := b.start(nil, "-device", b.device)
			c := b.peer()
			await(c, "calibration", calibrated)
			tc.halt(c)
			halted := func(m *corelink.Motion) bool { return len(m.Stop) > 0 && m.Stop[0] == tc.why && !m.Moving }
			await(c, "rest", halted)
			p.end(syscall.SIGKILL)
			var still, at vectorsim.State
			b.await("arms that hang still", func(s vectorsim.State) bool { // without power they may sink
				still, at = at, s
				return s.Duty == [4]float64{} && s.Angle == still.Angle
			})

			p = b.start(nil, "-device", b.device)
			pid := uint32(p.cmd.Process.Pid)
			await(c, "the next robotd", func(h *corelink.Hello) bool { return h.PID == pid && h.Body.Species != "" })
			from := b.board.State().Heard
			b.await("200 frames of the next robotd", func(s vectorsim.State) bool { return s.Heard > from+200 })
			if s := b.board.State(); s.Angle[spine.Head] != at.Angle[spine.Head] || s.Angle[spine.Lift] != at.Angle[spine.Lift] {
				t.Errorf("head and lift went from %v to %v", at.Angle, s.Angle)
			}
			if tc.powerless != nil {
				c.send(tc.powerless)
			}
			if r := c.ask(claimWheels); r.Code != "ok" {
				t.Fatalf("claim: %+v", r)
			}
			if r := c.line("wheel.speed = 1"); r.Code != "stopped" || !strings.Contains(r.Detail, tc.why) {
				t.Errorf("a drive: %+v, want %s", r, tc.why)
			}
			if m := await(c, "motion", halted); calibrated(m) {
				t.Errorf("a halted robot is calibrated: %+v", m)
			}
			tc.lift(c)
			await(c, "that it may move", func(m *corelink.Motion) bool { return len(m.Stop) == 0 })
			c.begin("wheel.speed = 2", func(m *corelink.Motion) bool { return m.Speed > 0.01 })
		})
	}
}
