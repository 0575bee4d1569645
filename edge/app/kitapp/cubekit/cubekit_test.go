package cubekit

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/cube"
	"kennel/edge/cube/cubesim"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

func run(args ...string) (code int, out, errOut string) {
	root := &cobra.Command{Use: "robotkit", Short: "x", Example: "x"}
	root.AddCommand(Cube())
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// blink shows red, and then green until it is stopped.
const blink = `[{"duration_ms": 30, "pattern": {"onColors": [[255, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]], "offColors": [[255, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]],
	"onPeriod_ms": [30, 30, 30, 30], "offPeriod_ms": [0, 0, 0, 0], "transitionOnPeriod_ms": [0, 0, 0, 0], "transitionOffPeriod_ms": [0, 0, 0, 0], "offset": [0, 0, 0, 0], "rotate": false}},
	{"duration_ms": 0, "pattern": {"onColors": [[0, 255, 0, 255], [0, 255, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]], "offColors": [[0, 255, 0, 255], [0, 255, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]],
	"onPeriod_ms": [30, 30, 30, 30], "offPeriod_ms": [0, 0, 0, 0], "transitionOnPeriod_ms": [0, 0, 0, 0], "transitionOffPeriod_ms": [0, 0, 0, 0], "offset": [0, 0, 0, 0], "rotate": false}}]`

// TestLights: a file plays on the cube beside a robot, part after part, and leaves it dark and free (part of VEC-LGT-02, VEC-LGT-04).
func TestLights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	block := cubesim.New(cubesim.Config{Address: "e1:00:00:00:00:01"})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- cubesim.Serve(ctx, root, []*cubesim.Cube{block}) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	radio := cube.Socket(filepath.Join(dir, cube.SocketPath))
	testwait.Until(t, testwait.Long, "the radio", func() error { return radio.Scan(t.Context(), 0, func(cube.Advert) {}) })
	file := filepath.Join(dir, "blink.json")
	if err := os.WriteFile(file, []byte(blink), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	stepped := make(chan struct{})
	go func() { // the cube's time
		defer close(stepped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				block.Step(5*time.Millisecond, [3]float64{0, 0, 9.8}, 0.2)
			}
		}
	}()
	defer func() { close(stop); <-stepped }()
	playing, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		c := Cube()
		cli.AddOutput(c)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		c.SetArgs([]string{"lights", file, "--root", dir, "--scan", "1ms"})
		ended <- c.ExecuteContext(playing)
	}()
	testwait.Until(t, testwait.Long, "green", testwait.Holds(func() bool {
		l := block.Lights()
		return l == [4]cube.RGB{{G: 255}, {G: 255}}
	}))
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	testwait.Until(t, testwait.Long, "a free cube", testwait.Holds(func() bool { return !block.Connected() && block.Lights() == [4]cube.RGB{} }))
}

// TestFiles: Kennel's animations are listed, files are checked, and what is not there is said.
func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errOut := run("cube", "list", "-o", "json")
	var rows []listed
	if err := json.Unmarshal([]byte(out), &rows); code != cli.ExitOK || err != nil || len(rows) != 8 {
		t.Fatal(code, err, out, errOut)
	}
	if r := rows[1]; r.Name != "celebrate" || r.Parts != 2 || r.MS != 3600 || len(r.Triggers) != 1 || r.Triggers[0] != "CubeCelebrate" {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile("blink.json", []byte(blink), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bad.json", []byte(`[{}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"check", "blink.json"}, cli.ExitOK}, {[]string{"check", "blink.json", "bad.json"}, cli.ExitFailed}, {[]string{"check"}, cli.ExitUsage},
		{[]string{"lights", "nothing"}, cli.ExitNotFound}, {[]string{"lights", "Begin"}, cli.ExitUnavailable}, {[]string{"lights", "bad.json"}, cli.ExitFailed},
	} {
		if code, _, errOut := run(append([]string{"cube"}, tc.args...)...); code != tc.code || code != 0 && errOut == "" {
			t.Errorf("%v: %d %s", tc.args, code, errOut)
		}
	}
}
