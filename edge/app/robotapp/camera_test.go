package robotapp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/edge/sight"
	"kennel/infra/testwait"
)

// TestCamera: another program of the robot sees what its camera does, taken as the tree's slots say (GOSTAI-MAP-V-08, part of VEC-ARCH-08); a robot that falls asleep
// switches its camera off and says so (part of VEC-PWR-20).
func TestCamera(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root, err := os.OpenRoot(b.root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- vectorsim.NewEye(b.board).Serve(ctx, root) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(testwait.For(t, ended, "the end of the camera"), root.Close()); err != nil {
			t.Error(err)
		}
	})
	b.powerOn()
	b.start(nil, "-device", b.device)
	p := b.peer()
	var c *sight.Conn
	testwait.Until(t, testwait.Long, "the socket", func() (err error) {
		c, err = sight.Dial(t.Context(), filepath.Join(b.root, sight.SocketPath))
		return err
	})
	defer c.Close()
	if err := c.Ask(sight.Wish{Rate: 15}); err != nil {
		t.Fatal(err)
	}
	var f sight.Frame
	var off *sight.Off
	until := func(what string, ok func() bool) {
		t.Helper()
		for began := time.Now(); ; {
			off = nil
			if err := c.Next(&f); err != nil && !errors.As(err, &off) {
				t.Fatalf("%s: %v", what, err)
			}
			if ok() {
				return
			}
			if time.Since(began) > testwait.Long {
				t.Fatalf("%s: the newest picture has %d by %d pixels, exposure %v, gain %v; %v", what, f.Width, f.Height, f.Exposure, f.Gain, off)
			}
		}
	}
	until("a picture", func() bool { return off == nil && f.Width == 640 && f.Height == 360 })
	p.line("camera.exposure = 0.004; camera.gain = 2; camera.resolution = 0")
	until("other settings", func() bool { return off == nil && f.Width == 1280 && f.Exposure == 4*time.Millisecond && f.Gain == 2 })
	for _, s := range []struct {
		to  power.Sleep
		why uint8
	}{{power.Awake, 0}, {power.PreSleepAnimation, 0}, {power.LightSleep, uint8(power.Sleepy)}} {
		if r := p.ask(func(n uint32) corelink.Message { return &corelink.Sleep{Request: n, State: uint8(s.to), Why: s.why} }); r.Code != "ok" {
			t.Fatalf("to %v: %+v", s.to, r)
		}
	}
	until("a camera that is off", func() bool { return off != nil })
}
