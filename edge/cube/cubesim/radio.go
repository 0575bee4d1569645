package cubesim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"kennel/edge/cube"
	"kennel/infra/sockpath"
)

// Serve is the radio of a robot near some cubes, at its socket below root, until ctx ends.
func Serve(ctx context.Context, root *os.Root, cubes []*Cube) error {
	ln, err := sockpath.ListenPrivateAs("unixpacket", root, cube.SocketPath)
	if err != nil {
		return fmt.Errorf("cubesim: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends accept
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := ln.AcceptUnix()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close() // it has heard nothing yet
			}
			return nil
		case err != nil:
			return fmt.Errorf("cubesim: accept: %w", err)
		}
		wg.Go(func() {
			ending := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer ending()
			(&central{conn: conn, cubes: cubes, out: make(chan cube.Packet, maxWaiting)}).serve(ctx)
		})
	}
}

// central is a robot's connection: a scan, or a link with one cube.
type central struct {
	conn  *net.UnixConn
	cubes []*Cube
	out   chan cube.Packet
	cube  *Cube // that is connected
}

// post hands a packet to the writer. It does not block: what a robot does not take is lost, as on the air.
func (r *central) post(p cube.Packet) {
	select {
	case r.out <- p:
	default:
	}
}

func (r *central) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer r.conn.Close() // nothing buffered
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if r.cube != nil {
			r.cube.left(r)
		}
	}()
	wg.Go(func() {
		defer r.conn.Close() // ends the reader too
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-r.out:
				if _, err := r.conn.Write(p.Append(nil)); err != nil {
					return
				}
			}
		}
	})
	b := make([]byte, cube.MaxPacket+1)
	for {
		n, err := r.conn.Read(b)
		if err != nil || n == 0 {
			return
		}
		p, err := cube.ParsePacket(b[:n])
		if err != nil {
			return // a robot that speaks something else
		}
		if p.Kind == cube.KindScan {
			r.hear(true)
			wg.Go(func() { r.scan(ctx) })
		}
		answer := cube.Packet{Kind: cube.KindDone, Characteristic: p.Characteristic}
		var reason string
		if answer.Value, reason = r.answer(p); reason != "" {
			answer.Kind, answer.Value = cube.KindRefused, []byte(reason)
		}
		select {
		case r.out <- answer:
		case <-ctx.Done():
			return
		}
	}
}

// hear posts the advertisement of each cube that is due one.
func (r *central) hear(first bool) {
	for _, c := range r.cubes {
		if a, ok := c.advertise(first); ok {
			r.post(cube.Packet{Kind: cube.KindAdvert, Value: a.Value()})
		}
	}
}

func (r *central) scan(ctx context.Context) {
	tick := time.NewTicker(advertEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.hear(false)
		}
	}
}

// answer does what a robot asks. reason says why not.
func (r *central) answer(p cube.Packet) (value []byte, reason string) {
	switch p.Kind {
	case cube.KindScan:
		return nil, ""
	case cube.KindConnect:
		for _, c := range r.cubes {
			if c.Address() == string(p.Value) && r.cube == nil && c.connect(r) {
				r.cube = c
				return nil, ""
			}
		}
		return nil, "no answer of " + string(p.Value)
	}
	if r.cube == nil {
		return nil, "not connected"
	}
	switch p.Kind {
	case cube.KindRead:
		return r.cube.read(p.Characteristic)
	case cube.KindWrite:
		return nil, r.cube.write(p.Characteristic, p.Value)
	case cube.KindSubscribe:
		if p.Characteristic != cube.Motion {
			return nil, "nothing to subscribe to"
		}
		r.cube.subscribe()
		return nil, ""
	case cube.KindPace:
		if len(p.Value) != 2 {
			return nil, "an interval has two bytes"
		}
		r.cube.tune(time.Duration(binary.LittleEndian.Uint16(p.Value)) * time.Millisecond)
		return nil, ""
	}
	return nil, "not a request"
}
