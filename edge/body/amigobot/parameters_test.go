package amigobot_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/amigobot/flash"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
)

// TestParameterCheck: values are taken as a person or a program writes them, by the names of the manual; constants are read only (AMIGO-CF-04,
// AMIGO-CF-05).
func TestParameterCheck(t *testing.T) {
	p := amigobot.Parameters{Serial: "00E20100"}
	for _, tt := range []struct{ name, parameter, in, want, err string }{
		{"a number", "WatchDog", `4000`, `4000`, ""},
		{"a text", "WatchDog", `"0xfa0"`, `4000`, ""},
		{"a name", "Name", `"a\"b"`, `"a\"b"`, ""},
		{"a name that is a number", "Name", `7`, `"7"`, ""},
		{"out of range", "HostBaud", `3`, "", "want a number from 0 to 2"},
		{"no number", "RotKp", `true`, "", "want a number from 0 to 65535"},
		{"a constant", "Serial", `"X"`, "", "is a constant of the robot"},
		{"another spelling", "watchdog", `1`, "", "did you mean WatchDog"},
		{"unknown", "wings", `2`, "", "unknown parameter"},
	} {
		got, err := p.Check(tt.parameter, json.RawMessage(tt.in))
		if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %s, %v, want %s, %q", tt.name, got, err, tt.want, tt.err)
		}
	}
	name, all := p.Document()
	if name != "amigo.Parameters" || len(all) != int(flash.Count) || string(all["Serial"]) != `"00E20100"` || string(all["RevCount"]) != "23310" {
		t.Errorf("%s begins as %s", name, all)
	}
}

// TestParameterStore: a robot takes parameters in System mode alone, all or none; it resets and uses them (AMIGO-CF-08, AMIGO-CF-10, AMIGO-UI-06).
func TestParameterStore(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	line, err := uart.ListenSocket(root, "system")
	if err != nil {
		t.Fatal(err)
	}
	memory := amigobotsim.NewMemory("1.3")
	r, err := amigobotsim.New(amigobotsim.Config{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, [amigobotsim.Ports]uart.Line{amigobotsim.System: line}) }()
	p := amigobot.Parameters{Device: filepath.Join(dir, "system"), Serial: "SIM00001"}
	if err := r.Poke(poke.Poke{Verb: poke.Tools}); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Store(ctx, map[string]json.RawMessage{"Name": json.RawMessage(`"rover"`), "HostBaud": json.RawMessage("9")}); err == nil {
		t.Errorf("a value out of range was stored: %s", got)
	}
	got, err := p.Store(ctx, map[string]json.RawMessage{"Name": json.RawMessage(`"rover"`), "TransVelMax": json.RawMessage("500")})
	if err != nil || string(got["Name"]) != `"rover"` || string(got["TransVelMax"]) != "500" || string(got["Serial"]) != `"SIM00001"` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := r.Await(ctx, func(s amigobotsim.State) bool { return s.Mode == amigobotsim.Waiting }); err != nil {
		t.Error(err)
	}
	cancel()
	if err := errors.Join(<-done, line.Close()); err != nil {
		t.Error(err)
	}
	if v := memory.Params; v.Value(flash.Name) != "rover" || v.Int(flash.HostBaud) != 0 {
		t.Errorf("the robot holds %+v", v)
	}
	if _, err := p.Store(t.Context(), nil); err == nil {
		t.Error("a robot without a System port took parameters")
	}
}
