package sight

import (
	"context"
	"errors"
	"time"
)

// How often the relay tries a camera that does not answer, and looks whether something else is wanted of it; own defaults.
const (
	retry   = time.Second
	refresh = 100 * time.Millisecond
)

// silent is the reason while the camera does not answer.
const silent = "the camera does not answer; try again, and start the robot again if it stays so"

// Relay hands the pictures of a camera to the listeners of a server. It belongs to robotd, which owns the camera.
type Relay struct {
	Device string // path of the camera's socket
	// Wish returns what the robot wants of its camera now: how it takes pictures, and how many a second there may be. 0 is none, for the reason.
	Wish func() (w Wish, reason string)

	said Wish // what the camera was asked last
}

// Look gives the camera's frames to s until ctx ends.
func (r *Relay) Look(ctx context.Context, s *Server) {
	for ctx.Err() == nil {
		err := r.relay(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Refuse(silent)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// relay gives frames until the camera is lost.
func (r *Relay) relay(ctx context.Context, s *Server) error {
	c, err := Dial(ctx, r.Device)
	if err != nil {
		return err
	}
	defer c.Close() // nothing buffered
	r.said = Wish{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- pump(c, s) }()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var refused time.Time
	for {
		want, reason := r.Wish()
		asked := s.Wish()
		want.Rate = min(want.Rate, asked.Rate)
		if want != r.said {
			if err := c.Ask(want); err != nil {
				_ = c.Close() // ends the pump
				return errors.Join(err, <-failed)
			}
			r.said = want
		}
		if want.Rate == 0 && asked.Rate > 0 && time.Since(refused) >= sayAgain {
			refused = time.Now()
			s.Refuse(reason)
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			_ = c.Close() // ends the pump
			<-failed
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// pump gives what a camera sends to a server, until the camera is lost.
func pump(c *Conn, s *Server) error {
	var f Frame
	for {
		var off *Off
		switch err := c.Next(&f); {
		case errors.As(err, &off):
			s.Refuse(off.Reason)
		case err != nil:
			return err
		default:
			s.Give(&f)
		}
	}
}
