package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/sight"
	"kennel/infra/errs"
)

// Facade is another interface of the robot on the gateway's port, for programs that speak something other than kennel.robot.v1. It keeps no model of the
// robot of its own: it reads and moves the robot through the methods of the Gateway in this file, with the same tokens and limits.
type Facade struct {
	Service *grpc.ServiceDesc       // its handlers check each caller themselves (Admit); nil: it has none
	Routes  map[string]http.Handler // by pattern of http.ServeMux, such as "POST /v1/battery_state"
	Run     func(context.Context)   // runs while the gateway does; nil: nothing to run
}

// Offer adds a facade. Call it before the gateway's part runs.
func (g *Gateway) Offer(f Facade) { g.facades = append(g.facades, f) }

// route adds the facades' routes to mux.
func (g *Gateway) route(mux *http.ServeMux) {
	for _, f := range g.facades {
		for pattern, h := range f.Routes {
			mux.Handle(pattern, h)
		}
	}
}

// begin registers the facades' services and starts what they run.
func (g *Gateway) begin(ctx context.Context, s *grpc.Server, wg *sync.WaitGroup) {
	for _, f := range g.facades {
		if f.Service != nil {
			s.RegisterService(f.Service, f)
		}
		if f.Run != nil {
			wg.Go(func() { f.Run(ctx) })
		}
	}
}

// Caller is a client during a call of a facade.
type Caller struct{ c caller }

// Name returns the name of the client's token, which several programs may share.
func (c Caller) Name() string { return c.c.Name }

// Admit checks the Authorization of a call and the right that it needs; "" needs none. counted calls count against the client's rate. Errors are
// Unauthenticated, Denied and Exhausted.
func (g *Gateway) Admit(ctx context.Context, authorization, right string, counted bool) (Caller, error) {
	c, err := g.admit(ctx, call{right: right, counted: counted}, authorization)
	return Caller{c}, err
}

// Streaming counts a stream of the client until end is called. The error is Exhausted for one too many.
func (c Caller) Streaming() (end func(), err error) {
	if n := c.c.streams.Add(1); n > maxStreams {
		c.c.streams.Add(-1)
		return nil, errs.Coded(errs.Exhausted, "too_many_streams", "%d streams of one client, want at most %d", n, maxStreams)
	}
	return func() { c.c.streams.Add(-1) }, nil
}

// Still returns an error once the client's token is not good any longer. A stream asks it each second.
func (g *Gateway) Still(ctx context.Context, c Caller, right string) error {
	return g.still(ctx, c.c, right)
}

// Stranger reports whether a call without a token may be judged now: all strangers together have few tries a second.
func (g *Gateway) Stranger() bool { return g.strangers.Allow() }

// Known returns err with a kind and a code for programs.
func Known(err error) error { return known(err) }

// Connect returns a connection to robotd of the client's own, for claims and orders in its name, and done, which gives it back when it claims nothing
// any longer. The error is Exhausted while all places are taken.
func (g *Gateway) Connect(ctx context.Context, c Caller) (own *coreclient.Client, done func(), err error) {
	p, err := g.peers.take(ctx, c.c.Name)
	if err != nil {
		return nil, nil, err
	}
	return p.Client, func() { g.peers.put(p) }, nil
}

// Program returns the name under which robotd knows the connections of the client.
func (c Caller) Program() string { return programName(c.c.Name) }

// Core returns the connection on which all clients look, for the tree, values and subscriptions, and for stops. It claims nothing.
func (g *Gateway) Core() *coreclient.Client { return g.core.Client }

// Events returns what happens from now on, and remove, which ends that. The channel is closed when robotd is lost; a reader that is slow misses events.
func (g *Gateway) Events() (events <-chan *corelink.Event, remove func()) { return g.events.add() }

// Connected reports whether robotd is connected.
func (g *Gateway) Connected() bool { _, ok := g.core.link.Hello(); return ok }

// View is a look through the camera, for one goroutine.
type View struct {
	g      *Gateway
	c      caller
	own    bool // of the robot itself
	w      *watcher
	end    func()
	dark   time.Time // since when there was no picture
	reason string
}

// View begins to look through the camera, with so many pictures a second, at most 15, until End is called. The caller has the right to the camera.
func (g *Gateway) View(c Caller, rate float64) *View {
	w, end := g.eyes.watch(min(rate, mostPictures))
	return &View{g: g, c: c.c, w: w, end: end, dark: time.Now(), reason: "the camera takes none"}
}

// Look is View for the robot itself: no client's token matters to it.
func (g *Gateway) Look(rate float64) *View {
	v := g.View(Caller{}, rate)
	v.own = true
	return v
}

// End ends the look. The camera takes no pictures while no program looks.
func (v *View) End() { v.end() }

// Next blocks until the next picture. The error is Unavailable, with the reason, after three seconds without any, and Unauthenticated or Denied once the
// token of the client is not good any longer.
func (v *View) Next(ctx context.Context) (Picture, error) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return Picture{}, ctx.Err()
		case s := <-v.w.shots:
			if s.reason == "" {
				v.dark = time.Now()
				return Picture{s}, nil
			}
			v.reason = s.reason
		case <-tick.C:
			if v.own {
				break
			}
			if err := v.g.still(ctx, v.c, Camera); err != nil {
				return Picture{}, err
			}
		}
		if time.Since(v.dark) > pictureTime {
			return Picture{}, noPicture(v.reason)
		}
	}
}

// Picture returns one picture that ok takes, whose exposure began after the call. Errors are as those of View.Next, and Exhausted for a client that asks
// for more than 15 a second.
func (g *Gateway) Picture(ctx context.Context, c Caller, ok func(*sight.Frame) bool) (Picture, error) {
	s, err := g.shoot(ctx, c.c, ok)
	return Picture{s}, err
}

// Photograph returns one picture that ok takes, as Picture does, for the robot itself: no client's limit counts it.
func (g *Gateway) Photograph(ctx context.Context, ok func(*sight.Frame) bool) (Picture, error) {
	s, err := g.expose(ctx, ok)
	return Picture{s}, err
}

// Picture is a picture of the camera. All who look share it: it is not to be changed.
type Picture struct{ s sighting }

// Frame returns the picture as the camera took it.
func (p Picture) Frame() *sight.Frame { return &p.s.Frame }

// JPEG returns the picture as JPEG, at full size or with half as many pixels each way. It is encoded once for all who want it alike.
func (p Picture) JPEG(half bool) ([]byte, error) {
	return p.s.encode(manner{format: sight.JPEG, quality: sight.DefaultQuality, half: half})
}

// Reports are the newest messages of robotd about the whole robot; nil before the first one and while robotd is not connected. They are not to be changed.
type Reports struct {
	State  *corelink.State
	Motion *corelink.Motion
	Power  *corelink.Power
}

// Reports returns the newest reports.
func (g *Gateway) Reports() Reports {
	g.reports.Lock()
	defer g.reports.Unlock()
	return g.reports.now
}

type reports struct {
	sync.Mutex
	now Reports
}

// hear keeps the reports of robotd, and passes its events on.
func (g *Gateway) hear(m corelink.Message) {
	g.reports.Lock()
	switch m := m.(type) {
	case *corelink.State:
		g.reports.now.State = m
	case *corelink.Motion:
		g.reports.now.Motion = m
	case *corelink.Power:
		g.reports.now.Power = m
	case *corelink.Bye:
		g.reports.now = Reports{}
	}
	g.reports.Unlock()
	g.events.hear(m)
}
