package pleorun

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/sim/uart"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

// talkTo runs the command monitor and returns its output and exit code.
func talkTo(t *testing.T, stdin string, args ...string) (string, string, int) {
	t.Helper()
	var out, errOut strings.Builder
	root := &cobra.Command{Use: "pleo"}
	root.AddCommand(MonitorCommand())
	root.SetIn(strings.NewReader(stdin))
	cli.AddOutput(root)
	code := cli.Run(t.Context(), root, append([]string{"monitor"}, args...), func(string) string { return "" }, &out, &errOut)
	return out.String(), errOut.String(), code
}

// running runs a Pleo with a line until the test ends, and returns what the command says of the line.
func running(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	root := &cobra.Command{Use: "pleo"}
	root.AddCommand(Command())
	cli.AddOutput(root)
	said, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, root, append([]string{"run"}, args...), func(string) string { return "" }, io.Discard, printed)
		_ = printed.Close() // ends the reader below
	}()
	first := bufio.NewReader(said)
	address, err := first.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, first) }() // ends with the command
	t.Cleanup(func() {
		cancel()
		if code := testwait.For(t, ended, "the end of the command"); code != cli.ExitOK {
			t.Errorf("exit code %d", code)
		}
	})
	return strings.TrimSpace(strings.TrimPrefix(address, "monitor: "))
}

// TestTalk: a person talks to the monitor of a Pleo over TCP, on a pseudo-terminal and in the folder of a simulated robot: each line has its answer, also one
// whose script prints meanwhile (PLEO-HST-01, PLEO-MON-07).
func TestTalk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sensors.amx")
	if err := os.WriteFile(file, script(t, `#include <Sensor.inc>
public on_sensor(time, sensor_name: sensor, value) { if (sensor == SENSOR_TERMINAL) printf("%d typed", value); return true; }
`), 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "ttyPleo")
	places := map[string]string{"TCP": "tcp:" + running(t, file, "-monitor", "127.0.0.1:0"), "pty": running(t, file, "-pty", link), "robot": robotFolder(t)}
	if places["pty"] != link {
		t.Errorf("the pseudo-terminal is at %s", places["pty"])
	}
	for name, at := range places {
		out, errOut, code := talkTo(t, "", at, "-e", "VERSION", "-e", "dance", "-e", "joint move 8 10", "-o", "json")
		if code != cli.ExitOK {
			t.Fatalf("%s: %d %s", name, code, errOut)
		}
		var got []string
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var e exchange
			if err := d.Decode(&e); err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(e.Answer)) // what the script prints comes before an answer, or between two
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "script: ") })
			got = append(got, e.Line+": "+strings.Join(lines, ""))
		}
		if want := []string{"VERSION: LifeOS 1.1\n", "dance: unknown command\n", "joint move 8 10: "}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		out, errOut, code = talkTo(t, "sensor read 2\n", at)
		if code != cli.ExitOK || !strings.Contains(out, "100\n") {
			t.Errorf("%s: typed: %d %q %s", name, code, out, errOut)
		}
	}
	for _, args := range [][]string{{dir, "-e", "version"}, {filepath.Join(dir, "none"), "-e", "version"}, {places["pty"], "-e", "one\ntwo"}} {
		if _, errOut, code := talkTo(t, "", args...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v is accepted", args)
		}
	}
}

// robotFolder runs a simulated Pleo of the fleet in a folder.
func robotFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() // the sockets have their own
	r, err := pleosim.NewRobot(pleosim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []*uart.Socket
	for _, name := range []string{pleo.DefaultDevice, pleosim.USBDevice} {
		l, err := uart.ListenSocket(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, lines[0], lines[1]) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.For(t, ended, "the end of the robot"); err != nil {
			t.Error(err)
		}
		for _, l := range lines {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	wait, cancelWait := context.WithTimeout(t.Context(), time.Minute)
	defer cancelWait()
	if _, err := r.Await(wait, func(s pleosim.State) bool { return s.Time > 0 }); err != nil {
		t.Fatal(err)
	}
	return dir.Name()
}
