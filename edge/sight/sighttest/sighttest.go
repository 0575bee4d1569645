// Package sighttest is a camera without a lens, for tests of the programs that look at a robot's pictures: it hands them out in place of robotd.
package sighttest

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/sight"
	"kennel/infra/testwait"
)

// Camera makes pictures whose brightness is their number. Safe for concurrent use.
type Camera struct {
	Looks, Taken atomic.Int32 // how often it was begun, and pictures
	Looking      atomic.Bool
	draw         func(f *sight.Frame)
	off          atomic.Value // string
}

// Serve serves below root, at sight.SocketPath, until the end of the test. size is asked for each picture.
func Serve(t testing.TB, root string, size func() (w, h int)) *Camera {
	t.Helper()
	return ServePictures(t, root, func(f *sight.Frame) {
		f.Shape(size())
		f.At = monoclock.Now()
		for i := range f.Pix {
			f.Pix[i] = 128
			if i < f.Width*f.Height {
				f.Pix[i] = byte(f.Seq)
			}
		}
	})
}

// ServePictures is Serve for pictures that draw makes.
func ServePictures(t testing.TB, root string, draw func(f *sight.Frame)) *Camera {
	t.Helper()
	c := &Camera{draw: draw}
	c.SetOff("")
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := sight.Listen(dir, sight.SocketPath)
	_ = dir.Close() // read only
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx, func(ctx context.Context) { c.look(ctx, srv) }) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.For(t, ended, "the end of the camera"); err != nil {
			t.Error(err)
		}
	})
	return c
}

// SetOff says why there are no pictures from now on; "": there are some.
func (c *Camera) SetOff(reason string) { c.off.Store(reason) }

func (c *Camera) look(ctx context.Context, srv *sight.Server) {
	c.Looks.Add(1)
	c.Looking.Store(true)
	defer c.Looking.Store(false)
	f := sight.Frame{Exposure: 5 * time.Millisecond, Gain: 2, Focal: [2]float64{320, 386}, Centre: [2]float64{32, 18}}
	for ctx.Err() == nil {
		if off := c.off.Load().(string); off != "" {
			srv.Refuse(off)
		} else {
			f.Seq = uint64(c.Taken.Add(1))
			c.draw(&f)
			srv.Give(&f)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
