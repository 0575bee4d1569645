package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/edge/sight"
	"kennel/infra/api/vectorpb"
	"kennel/infra/bench"
)

// The budgets of programs for the original Vector (issue 33).
const (
	originalListeners = 4   // to robot_state, 30 times a second
	originalListening = 2.0 // per cent of a processor
	originalWatchers  = 2   // of the camera, 15 pictures a second
	originalWatching  = 100.0
)

// BenchmarkVectorSDKBesideBudget measures what programs for the original Vector cost a whole simulated robot: event streams with the state 30 times a second, and feeds of
// the camera; and whether the loop is later for both together. There is no cloud.
func BenchmarkVectorSDKBesideBudget(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		m, err := measureOriginals(b.Context(), b, programs(b))
		all.add(m)
		return err
	})
	all.report(b)
}

// pidsOf returns the processes of a robot's programs.
func pidsOf(dir string) (map[string]int, error) {
	var state struct {
		Pids map[string]int `json:"pids"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "run/sim.json"))
	if err == nil {
		err = json.Unmarshal(b, &state)
	}
	return state.Pids, err
}

func measureOriginals(ctx context.Context, tb testing.TB, bin string) (all []measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	r, err := startOriginal(ctx, tb, bin)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	pids, err := pidsOf(r.dir)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		name, of string
		programs originals
		n        int
		budget   float64
	}{
		{"states", "event streams with robot_state 30 times a second", originals{listeners: originalListeners}, originalListeners, originalListening},
		{"camera", "feeds of the camera, 15 pictures a second", originals{watchers: originalWatchers}, originalWatchers, originalWatching},
	} {
		run, end := x.programs.at(ctx, r.file, func(int) error { return nil })
		idle, busy, err := inTurns(ctx, bench.Part(tb, sdkTime), run, shareOf(pids["agentd"], pids["robotd"]))
		end()
		if err != nil {
			return all, err
		}
		all = append(all, measured{bench.Line{Name: "vectorsdk/" + x.name, Unit: "%", Less: true, Bound: 1,
			Note: fmt.Sprintf("of a processor, robotd and agentd together, for %d %s, beside %.2f %% without; reference: the budget", x.n, x.of, bench.Mean(idle))},
			bench.Pair{Value: max(0.01, bench.Mean(busy)-bench.Mean(idle)), Reference: x.budget}})
	}
	r.stop() // its loop would be in the way of the other's
	late, err := lateBesideOriginals(ctx, tb, bin)
	if err != nil {
		return all, err
	}
	return append(all, measured{bench.Line{Name: "vectorsdk/loop", Unit: "us", Less: true, Bound: 1 / sdkLoop,
		Note: fmt.Sprintf("lateness of 99 of 100 steps of the loop beside %d event streams and %d feeds of the camera; reference: without them; the simulated camera draws in both", originalListeners, originalWatchers)},
		late}), nil
}

// startOriginal starts a simulated Vector as make run does.
func startOriginal(ctx context.Context, tb testing.TB, bin string) (*sdkRobot, error) {
	r, err := makeSDKRobot(ctx, tb, bin)
	if err != nil {
		return nil, err
	}
	if _, err = r.start(bin, "robotsim", "robot", "-root", r.dir, "-log-level", "warn"); err == nil {
		err = r.found(ctx, bin)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// originals are programs for the original Vector.
type originals struct{ listeners, watchers int }

// at returns a load for inTurns that starts those programs with the robot of a file, and ends them. To stop them for a while would not do: the robot would send to them all
// the same.
func (x originals) at(ctx context.Context, file string, begun func(pid int) error) (run func(on bool) error, end func()) {
	var programs []*bench.Program
	end = func() {
		for _, p := range programs {
			p.Stop()
		}
		programs = nil
	}
	return func(on bool) error {
		end()
		if !on {
			return nil
		}
		for i := range x.listeners + x.watchers {
			part := hearStates
			if i >= x.listeners {
				part = watchCamera
			}
			p, err := startPart(0, part, file)
			if err != nil {
				return err
			}
			programs = append(programs, p)
		}
		for _, p := range programs {
			if _, err := p.Await(ctx, "begun"); err != nil {
				return err
			}
			if err := begun(p.Pid()); err != nil {
				return err
			}
		}
		return nil
	}, end
}

// lateBesideOriginals returns the 99th percentile of how late the steps of a fresh robot's loop are, in microseconds, beside all those programs and without them. The camera,
// which is simulated by the board's process and makes the board late, draws its pictures all the time.
func lateBesideOriginals(ctx context.Context, tb testing.TB, bin string) (late bench.Pair, err error) {
	r, err := startPunctual(ctx, tb, bin)
	if err != nil {
		return late, err
	}
	defer r.stop()
	eye, err := startPart(0, lookAtWorld, filepath.Join(r.dir, sight.DevicePath))
	if err != nil {
		return late, err
	}
	defer eye.Stop()
	if _, err := eye.Await(ctx, "begun"); err != nil {
		return late, err
	}
	if err := keepOffLoop(eye.Pid()); err != nil {
		return late, err
	}
	run, end := originals{originalListeners, originalWatchers}.at(ctx, r.file, keepOffLoop)
	defer end()
	return lateInTurns(ctx, r, 2*bench.Part(tb, sdkTime), run)
}

// lookFile takes the pictures of a simulated camera, as robotd does for a program, so that the camera draws them.
func lookFile(ctx context.Context, device string, out io.Writer) error {
	c, err := sight.Dial(ctx, device)
	if err != nil {
		return err
	}
	if err := c.Ask(sight.Wish{Resolution: 1, Rate: 15, Gain: 1}); err != nil {
		return err
	}
	begun := sync.OnceFunc(func() { fmt.Fprintln(out, "begun") })
	var f sight.Frame
	for err == nil {
		if err = c.Next(&f); err == nil {
			begun()
		}
	}
	return err
}

const hearStates, watchCamera, lookAtWorld = "hearstates", "watchcamera", "look"

// place is where a program finds a robot.
type place struct{ Address, Name, Certificate, Token string }

// readPlace reads the file of a robot, and returns what its certificate is checked with.
func readPlace(file string) (p place, conf *tls.Config, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return p, nil, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(p.Certificate))
	return p, &tls.Config{RootCAs: pool, ServerName: p.Name}, nil
}

// dialOriginal connects to the robot of a file as a program for the original does.
func dialOriginal(ctx context.Context, file string) (vectorpb.ExternalInterfaceClient, context.Context, error) {
	place, conf, err := readPlace(file)
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(place.Address, grpc.WithTransportCredentials(credentials.NewTLS(conf)),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20)) // no ping at each message, as from Python
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return vectorpb.NewExternalInterfaceClient(conn), metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+place.Token), nil
}

func hearFile(ctx context.Context, file string, out io.Writer) error {
	c, ctx, err := dialOriginal(ctx, file)
	if err != nil {
		return err
	}
	s, err := c.EventStream(ctx, &vectorpb.EventRequest{})
	begun := sync.OnceFunc(func() { fmt.Fprintln(out, "begun") })
	for err == nil {
		var m *vectorpb.EventResponse
		if m, err = s.Recv(); err == nil && m.Event.GetRobotState() != nil {
			begun()
		}
	}
	return err
}

func watchFile(ctx context.Context, file string, out io.Writer) error {
	c, ctx, err := dialOriginal(ctx, file)
	if err != nil {
		return err
	}
	s, err := c.CameraFeed(ctx, &vectorpb.CameraFeedRequest{})
	begun := sync.OnceFunc(func() { fmt.Fprintln(out, "begun") })
	for err == nil {
		if _, err = s.Recv(); err == nil {
			begun()
		}
	}
	return err
}
