package voice

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/infra/api/live"
	"kennel/infra/testwait"
)

// robotd is one with four lights and a wheel, which tells what it is asked.
type robotd struct {
	client    *coreclient.Client
	asked     chan string
	taken     atomic.Bool // the lights are another program's
	restarted atomic.Bool // it was restarted: it knows no lease
}

func (c *robotd) Hello() (corelink.Hello, bool) { return corelink.Hello{}, true }

func (c *robotd) Send(m corelink.Message) error {
	var answer corelink.Message
	switch m := m.(type) {
	case *corelink.GetTree:
		answer = &corelink.Tree{Request: m.Request, Tree: live.Tree{Nodes: []live.Node{{Full: "robot.body.led[0]", Interface: "RGBLed", Actuator: true},
			{Full: "robot.body.led[1]", Interface: "Led, RGBLed", Actuator: true}, {Full: "robot.body.led[2]", Interface: "RGBLed", Actuator: true},
			{Full: "robot.body.led[3]", Interface: "RGBLed", Actuator: true}, {Full: "robot.body.wheel[left]", Interface: "RotationalMotor", Actuator: true}}}}
	case *corelink.Claim:
		r := &corelink.Reply{Request: m.Request, Code: "ok", Lease: 7}
		if c.restarted.Store(false); c.taken.Load() {
			r.Code = "busy"
		}
		c.asked <- fmt.Sprintf("claim %d %s", m.Priority, strings.Join(m.Devices, " "))
		answer = r
	case *corelink.Do:
		c.asked <- m.Line
		answer = &corelink.Reply{Request: m.Request, Code: "ok"}
	case *corelink.Renew:
		r := &corelink.Reply{Request: m.Request, Code: "ok"}
		if c.restarted.Load() {
			r.Code = "lease_gone"
		}
		answer = r
	case *corelink.Release:
		c.asked <- "release"
	}
	if answer != nil {
		go c.client.Handle(answer) // as from a connection
	}
	return nil
}

// TestLights is VEC-MIC-09: blue while the robot listens, on lights that are given back, and not on those of another program. The light of microphones that are
// switched off goes before every program, on the light that clips do not use (part of VEC-LGT-06).
func TestLights(t *testing.T) {
	c := &robotd{asked: make(chan string, 16)}
	c.client = coreclient.New(c)
	c.client.Handle(&corelink.Hello{})
	ctx, stop := context.WithCancel(t.Context())
	want, ended := make(chan light, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lights(ctx, c.client, want, 20*time.Millisecond, slog.New(slog.DiscardHandler))
	}()
	next := func(l light, lines ...string) {
		t.Helper()
		want <- l
		for _, line := range lines {
			if got := testwait.For(t, c.asked, line); got != line {
				t.Errorf("%v: asked for %q, want %q", l, got, line)
			}
		}
	}
	const claims = "claim 20 robot.body.led[0] robot.body.led[1] robot.body.led[2] robot.body.led[3]"
	lit := func(first int, l light) string {
		var steps []string
		for i := first; i < 4; i++ {
			for c, name := range "rgb" {
				steps = append(steps, fmt.Sprintf("robot.body.led[%d].%c = %v", i, name, l[c]))
			}
		}
		return strings.Join(steps, "; ")
	}
	next(blue, claims, lit(0, blue))
	next(orange, lit(0, orange))
	next(dark, lit(0, dark), "release")
	next(dark)
	c.taken.Store(true)
	next(blue, claims)
	c.taken.Store(false) // the other program is done
	for got := claims; got != lit(0, blue); got = testwait.For(t, c.asked, claims) {
		if got != claims {
			t.Fatalf("asked for %q, want the lights", got)
		}
	}
	const status = "claim 60 robot.body.led[3]"
	next(dimRed, lit(0, dark), "release", status, lit(3, dimRed))
	c.restarted.Store(true)
	for _, line := range []string{"release", status, lit(3, dimRed)} {
		if got := testwait.For(t, c.asked, line); got != line {
			t.Errorf("restarted: asked for %q, want %q", got, line)
		}
	}
	next(blue, lit(3, dark), "release", claims, lit(0, blue))
	next(dimRed, lit(0, dark), "release", status, lit(3, dimRed))
	stop()
	if got := testwait.For(t, c.asked, "the lights"); got != "release" {
		t.Errorf("at the end %q", got)
	}
	<-ended
}
