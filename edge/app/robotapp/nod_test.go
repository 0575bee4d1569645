package robotapp

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/bodies"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/aibosim"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/env/robotfs"
	"kennel/edge/gateway"
	"kennel/edge/sim/uart"
	"kennel/infra/runner"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// TestNod: examples/sdk/nod, which names no species, reads what a Vector, a Pleo and each model of AIBO feel and nods their heads, by kennel.robot.v1 through the
// gateway of each robot (issue 35, what must hold 4; issue 36, what must hold 6). The robot's own tree agrees that the head went up by 0.3 rad.
func TestNod(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "nod")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./examples/sdk/nod")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	nod := func(t *testing.T, id thing.ID, word, model, touched string, simulate func(ctx context.Context, line *uart.Socket) error) {
		file := gatewayOf(t, id, word, model, nil, simulate)
		// The body is opened, and Vector's head looks for its zero, while the program is already there.
		testwait.Until(t, 4*patience, "a nod", func() error {
			args := append(testexec.Emulator(), program)
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "KENNEL_ROBOT="+file)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			feels, says, _ := strings.Cut(string(out), "nodded;")
			if !strings.Contains(feels, touched) { // it was there before the body was
				return fmt.Errorf("it feels %q, want %q", feels, touched)
			}
			var up float64
			if _, err := fmt.Sscanf(says, " it looked up by %f degrees", &up); err != nil || math.Abs(up-0.3*180/math.Pi) > 3 {
				t.Errorf("it says %q, %v", out, err)
			}
			return nil
		})
	}
	t.Run("vector", func(t *testing.T) {
		t.Parallel()
		b := vectorsim.New(vectorsim.Config{Volts: 3.9})
		nod(t, "vic:00e20100", "vector", "", "", b.RunOn)
	})
	t.Run("pleo", func(t *testing.T) {
		t.Parallel()
		b, err := pleosim.NewRobot(pleosim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b.Set(lifeos.SensorHead, 1)
		nod(t, "pleo:00e20100", "pleo", "", "touched: footTouchBR\ntouched: headTouchU\n", func(ctx context.Context, line *uart.Socket) error { return b.Run(ctx, line, nil) })
		if deg := b.State().Angles[lifeos.JointNeckVertical]; math.Abs(deg) > 2 {
			t.Errorf("after the nod its neck is at %v degrees", deg)
		}
	})
	for _, m := range aibo.Models {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			b, err := aibosim.New(aibosim.Config{Model: m})
			if err != nil {
				t.Fatal(err)
			}
			nod(t, "aibo:00e20100", "aibo", m.String(), "", func(ctx context.Context, line *uart.Socket) error { return b.Run(ctx, line) })
			if s := b.State(); s.Falls != 0 || s.Refused != 0 {
				t.Errorf("after the nod: %+v", s)
			}
		})
	}
}

// gatewayOf runs robotd and a gateway on a simulated body, which hand touches, and returns the file with which a program connects.
func gatewayOf(t *testing.T, id thing.ID, word, model string, hand gateway.Hand, simulate func(ctx context.Context, line *uart.Socket) error) string {
	t.Helper()
	root := t.TempDir()
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	if err := robotfs.WriteFile(dir, robotfs.ModelFile, []byte(model), 0o644); err != nil {
		t.Fatal(err)
	}
	line, err := uart.ListenSocket(dir, "body")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	plate, err := gatewaycert.Open(gatewaycert.Config{Root: dir, Species: id.Species(), Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Robot{Root: dir, Dir: root, Thing: id, OS: "2.1.0.7", Log: log, Changed: func() {}, Now: time.Now})
	kind, _ := bodies.Of(id.Species())
	g := gateway.New(h, gateway.Config{Addr: "127.0.0.1:0", Page: kind.Page, Hand: hand, Certificate: func() (tls.Certificate, bool) { return plate.TLSCertificate(), true },
		Name: plate.Name, Client: func(_ context.Context, bearer string) (gateway.Client, bool) {
			return gateway.Client{Name: bearer}, bearer == "nod"
		}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- simulate(ctx, line) }()
	go func() { ended <- Run(ctx, log, configOf(root, word, filepath.Join(root, "body"))) }()
	go func() { ended <- runner.Run(ctx, log, runner.Config{}, g.Part().Services...) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, <-ended, line.Close()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	testwait.Until(t, 4*patience, "the gateway", testwait.Holds(func() bool { return g.Addr() != "" }))
	b, err := json.Marshal(map[string]string{"thing": string(id), "address": g.Addr(), "name": plate.Name(), "certificate": string(plate.PEM()), "token": "nod"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "robot.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
