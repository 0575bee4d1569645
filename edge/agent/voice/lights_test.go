package voice

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/infra/api/live"
	"kennel/infra/testwait"
)

// robotd is one with two lights and a wheel, which tells what it is asked.
type robotd struct {
	client *coreclient.Client
	asked  chan string
	taken  bool // the lights are another program's
}

func (c *robotd) Hello() (corelink.Hello, bool) { return corelink.Hello{}, true }

func (c *robotd) Send(m corelink.Message) error {
	var answer corelink.Message
	switch m := m.(type) {
	case *corelink.GetTree:
		answer = &corelink.Tree{Request: m.Request, Tree: live.Tree{Nodes: []live.Node{{Full: "robot.body.led[0]", Interface: "RGBLed", Actuator: true},
			{Full: "robot.body.led[1]", Interface: "Led, RGBLed", Actuator: true}, {Full: "robot.body.wheel[left]", Interface: "RotationalMotor", Actuator: true}}}}
	case *corelink.Claim:
		r := &corelink.Reply{Request: m.Request, Code: "ok", Lease: 7}
		if c.taken {
			r.Code = "busy"
		}
		c.asked <- "claim " + strings.Join(m.Devices, " ")
		answer = r
	case *corelink.Do:
		c.asked <- m.Line
		answer = &corelink.Reply{Request: m.Request, Code: "ok"}
	case *corelink.Release:
		c.asked <- "release"
	}
	if answer != nil {
		go c.client.Handle(answer) // as from a connection
	}
	return nil
}

// TestLights is VEC-MIC-09: blue while the robot listens, on lights that are given back, and not on those of another program.
func TestLights(t *testing.T) {
	c := &robotd{asked: make(chan string, 16)}
	c.client = coreclient.New(c)
	c.client.Handle(&corelink.Hello{})
	ctx, stop := context.WithCancel(t.Context())
	want, ended := make(chan light, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lights(ctx, c.client, want, slog.New(slog.DiscardHandler))
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
	const claims, off = "claim robot.body.led[0] robot.body.led[1]", "robot.body.led[0].r = 0; robot.body.led[0].g = 0; robot.body.led[0].b = 0; robot.body.led[1].r = 0; robot.body.led[1].g = 0; robot.body.led[1].b = 0"
	next(blue, claims, strings.ReplaceAll(off, "b = 0", "b = 1"))
	next(orange, strings.ReplaceAll(strings.ReplaceAll(off, "r = 0", "r = 1"), "g = 0", "g = 0.4"))
	next(dark, off, "release")
	next(dark)
	c.taken = true
	next(blue, claims)
	c.taken = false
	next(dimRed, claims, strings.ReplaceAll(off, "r = 0", "r = 0.3"))
	stop()
	if got := testwait.For(t, c.asked, "the lights"); got != "release" {
		t.Errorf("at the end %q", got)
	}
	<-ended
}
