package gateway

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"kennel/edge/mic"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// heardTogether is how many chunks a message holds, 41 ms of sound; own default.
const heardTogether = 4

// hearken tells what the robot hears until the client ends the call.
func (g *Gateway) hearken(ctx context.Context, c caller, _ *robotpb.ListenRequest, tell func(*robotpb.HeardPiece) error) error {
	t, err := g.core.Tree(ctx)
	if err != nil {
		return err
	}
	if g.cfg.Ears == nil || !has(t, "AudioIn") {
		return errs.Coded(errs.Invalid, "unable", "this body has no microphones; describe lists the parts that it has")
	}
	l, end := g.cfg.Ears.Listen()
	defer end()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	next, chunks := &robotpb.HeardPiece{}, 0
	told := false // a message since the tick before
	for {
		var m *robotpb.HeardPiece
		select {
		case <-ctx.Done():
			return ctx.Err()
		case x := <-l.Chunks:
			addHeard(next, &x)
			if chunks++; chunks == heardTogether {
				m, next, chunks = next, &robotpb.HeardPiece{}, 0
			}
		case <-l.Off:
			if why := g.cfg.Ears.Why(); why != "" {
				m, next, chunks = &robotpb.HeardPiece{Reason: why}, &robotpb.HeardPiece{}, 0
			}
		case <-tick.C:
			if err := g.still(ctx, c, Hear); err != nil {
				return err
			}
			if !told {
				m = &robotpb.HeardPiece{Reason: g.cfg.Ears.Why()}
			}
			told = false
		}
		if m == nil {
			continue
		}
		if err := tell(m); err != nil {
			return err
		}
		told = true
	}
}

// addHeard adds a chunk to a message.
func addHeard(m *robotpb.HeardPiece, x *mic.Chunk) {
	m.Rate, m.AtUs, m.Voice, m.Own = mic.Rate, x.At.Microseconds(), m.Voice || x.Voice, m.Own || x.Own
	m.Missed += x.Lost * mic.FrameSamples
	for _, v := range x.Samples {
		m.Data = binary.LittleEndian.AppendUint16(m.Data, uint16(v))
	}
	if x.Voice && x.Direction < mic.NoDirection {
		bearing := math.Remainder(-2*math.Pi*float64(x.Direction)/mic.NoDirection, 2*math.Pi) // they are counted clockwise
		m.Bearing = &bearing
	}
}
