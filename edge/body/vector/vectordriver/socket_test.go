package vectordriver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
)

// TestSocket: a Unix socket is a line like another. A board behind it is driven and halted; one that is gone is a hung-up line.
func TestSocket(t *testing.T) {
	short := filepath.Join(t.TempDir(), "board")
	ln, err := net.Listen("unix", short)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "board") // longer than an address may be
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(short, path); err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b := vectorsim.New(vectorsim.Config{})
	ended := make(chan error, 1)
	power, cut := context.WithCancel(ctx)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		ended <- b.Run(power, conn.(*net.UnixConn))
	}()
	d, err := vectordriver.Open(ctx, vectordriver.Config{Device: path, Timeout: 20 * time.Second, HoldProcessor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var act vectordriver.Act
	act.Motors[0] = 0.5
	until(t, d, &act, "driving", func(s *vectordriver.Sense) bool { return b.State().Duty[0] > 0.49 && s.Motors[0].Position != 0 })
	// The simulated board's control word is known (VEC-BODY-32, VEC-HW-07).
	act.Off = vectordriver.SensorsPart | vectordriver.ChargerPart
	until(t, d, &act, "without sensors", func(s *vectordriver.Sense) bool { return s.Power.Has(body.SensorsOff) })
	act.Off = 0
	until(t, d, &act, "with sensors", func(s *vectordriver.Sense) bool { return !s.Power.Has(body.SensorsOff) })
	if err := d.Halt(); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Await(ctx, func(s vectorsim.State) bool { return s.Duty == [4]float64{} }); err != nil {
		t.Fatalf("%v; %+v", err, s)
	}
	cut()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var s vectordriver.Sense
	for range 20 {
		if err = d.ReadSense(&s, monoclock.Now()+5*time.Second); err != nil {
			break
		}
	}
	if !errors.Is(err, body.ErrLink) {
		t.Errorf("Read from a board that is gone: %v, want %v", err, body.ErrLink)
	}
	if _, err := vectordriver.Open(ctx, vectordriver.Config{Device: path + "none", Timeout: time.Second}); err == nil {
		t.Error("opened nothing")
	}
}
