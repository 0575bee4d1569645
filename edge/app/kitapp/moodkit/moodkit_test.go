package moodkit

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

func command() *cobra.Command {
	root := &cobra.Command{Use: "robotkit", Short: "x", Example: "x"}
	root.AddCommand(Mood())
	cli.AddOutput(root)
	return root
}

// TestMood: a mood is shown, set within its ranges, moved by events and watched with the causes of its changes (part of VEC-EMO-11).
func TestMood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	robotdtest.Start(t, dir, mindtest.Voice)
	mindtest.Start(t, dir, mindtest.None)
	run := func(into any, args ...string) (code int, errOut string) {
		t.Helper()
		var o, e bytes.Buffer
		code = cli.Main(command(), append([]string{"mood"}, append(args, "-root", dir, "-o", "json")...), func(string) string { return "" }, &o, &e)
		if code == 0 {
			if err := json.Unmarshal(o.Bytes(), into); err != nil {
				t.Fatalf("%v: %v in %s", args, err, o.String())
			}
		}
		return code, e.String()
	}
	r, w := io.Pipe()
	defer r.Close()
	watching, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		defer w.Close()
		c := command()
		c.SetArgs([]string{"mood", "watch", "--root", dir, "--output", "json"})
		c.SetOut(w)
		ended <- c.ExecuteContext(watching)
	}()
	changes := json.NewDecoder(r)
	next := func() (f mindlink.Feeling) {
		t.Helper()
		if err := changes.Decode(&f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	next() // the mood as it is
	var f mindlink.Feeling
	if code, e := run(&f, "set", "Happy=-3", "Stimulated=0.5"); code != 0 || f.Emotions["Happy"].Value != -1 || math.Abs(f.Emotions["Stimulated"].Value-0.5) > 0.01 || f.Emotions["Trust"].Value != 0 {
		t.Errorf("set: %d %s %+v", code, e, f.Emotions)
	}
	if f := next(); f.Emotions["Happy"].Value != -1 || f.Emotions["Happy"].Before != 0 || f.Events != nil {
		t.Errorf("watched: %+v", f)
	}
	if code, e := run(&f, "post", "ReactToTriggerWord"); code != 0 || f.Emotions["Stimulated"].Value != 1 {
		t.Errorf("post: %d %s %+v", code, e, f.Emotions)
	}
	for f := next(); len(f.Events) != 1 || f.Events[0] != "ReactToTriggerWord"; f = next() {
		if f.Events != nil {
			t.Errorf("watched: %+v", f)
		}
	}
	if code, e := run(&f, "show"); code != 0 || f.Emotions["Happy"].Max != 1 {
		t.Errorf("show: %d %s %+v", code, e, f.Emotions)
	}
	var plain bytes.Buffer
	if code := cli.Main(command(), []string{"mood", "show", "-root", dir}, func(string) string { return "" }, &plain, io.Discard); code != 0 || !strings.Contains(plain.String(), "-1 to 1") {
		t.Errorf("show: %d %s", code, plain.String())
	}
	for args, want := range map[string]string{"set Happy": "EMOTION=VALUE", "set Glad=1": "Stimulated", "post Nonsense": "Nonsense", "set Happy=x": "EMOTION=VALUE", "set Happy=NaN": "EMOTION=VALUE", "set Happy=-Inf": "EMOTION=VALUE"} {
		if code, e := run(nil, strings.Fields(args)...); code == 0 || !strings.Contains(e, want) {
			t.Errorf("%s: %d %s, want an error with %s", args, code, e, want)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // what comes until the end
	interrupt()
	if err := testwait.For(t, ended, "the end of watching"); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
