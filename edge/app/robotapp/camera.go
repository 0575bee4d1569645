package robotapp

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"kennel/edge/robot"
	"kennel/edge/sight"
)

// eye returns the camera among the body's parts; nil: it has none.
func (c *core) eye() *robot.Node {
	for _, n := range c.control.Model().Tree.Nodes() {
		if n.Is("VideoIn") {
			return n
		}
	}
	return nil
}

func (c *core) hasCamera() bool { return c.eye() != nil }

// serveCamera hands the camera's pictures to the robot's other programs. They are taken as the camera's slots say, and as many as power and sleep allow (part of
// VEC-PWR-07, part of VEC-PWR-20).
func (c *core) serveCamera(ctx context.Context) error {
	root, err := os.OpenRoot(c.cfg.Root)
	if err != nil {
		return err
	}
	srv, err := sight.Listen(root, sight.SocketPath)
	_ = root.Close() // read only
	if err != nil {
		return err
	}
	r := sight.Relay{Device: filepath.Join(c.cfg.Root, sight.DevicePath), Wish: c.wish}
	return srv.Run(ctx, func(ctx context.Context) { r.Look(ctx, srv) })
}

// wish returns how the camera shall take pictures now.
func (c *core) wish() (w sight.Wish, reason string) {
	eye := c.eye()
	number := func(slot string, otherwise float64) float64 {
		if r := eye.Slot(slot); r != nil {
			if s := c.control.Board().Sample(r.ID); s.Known() {
				return s.Value
			}
		}
		return otherwise
	}
	w.Resolution = int(number("resolution", 1))
	w.Exposure = time.Duration(number("exposure", 0) * float64(time.Second))
	w.Gain = number("gain", 1)
	if w.Rate = c.peers.CameraHz(); w.Rate == 0 {
		reason = "the robot has switched its camera off, because it sleeps or its battery is low; wake it, or charge it"
	}
	return w, reason
}
