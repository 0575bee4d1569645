package consolefilter

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/env/robotfs"
)

// original is the file with the channels of the seed, table 590.
const original = `{ // of the original
"osx": {"channels": [{"channel": "*", "enabled": true}]},
"vicos": {"channels": [
  {"channel": "Actions", "enabled": false}, {"channel": "JdocsManager", "enabled": true}, {"channel": "PerfMetric", "enabled": true},
  {"channel": "consolefilter", "enabled": false}, {"channel": "*", "enabled": false}],
 "levels": [{"level": "event", "enabled": true}, {"level": "debug", "enabled": false}]}}`

func write(t *testing.T, root *os.Root, text string) {
	t.Helper()
	if err := robotfs.WriteFile(root, File, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestChannelsAndLevels is VEC-DGN-07: by the file, the star for channels that it does not name, and a warning always.
func TestChannelsAndLevels(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"none":           {"", "info warn"},
		"of the source":  {original, "warn"},
		"this one":       {`{"vicos":{"channels":[{"channel":"consolefilter","enabled":true},{"channel":"*","enabled":false}]}}`, "info warn"},
		"not this one":   {`{"vicos":{"channels":[{"channel":"consolefilter","enabled":false}]}}`, "warn"},
		"others are on":  {`{"vicos":{"channels":[{"channel":"Actions","enabled":false}]}}`, "info warn"},
		"debug":          {`{"vicos":{"levels":[{"level":"debug","enabled":true}]}}`, "debug info warn"},
		"no info":        {`{"vicos":{"levels":[{"level":"info","enabled":false}]}}`, "warn"},
		"debug, no star": {`{"vicos":{"channels":[{"channel":"*","enabled":false}],"levels":[{"level":"debug","enabled":true}]}}`, "warn"},
	} {
		root := open(t)
		if tc.file != "" {
			write(t, root, tc.file)
		}
		f, err := Open(root, slog.LevelInfo)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b bytes.Buffer
		log := slog.New(f.Handler(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("thing", "vic:1")
		log.Debug("debug")
		log.Info("info")
		log.Warn("warn")
		var got []string
		for line := range strings.Lines(b.String()) {
			_, msg, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Fields(msg)[0])
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// TestChangeAtRunTime: a change is in force without a restart, a mistake leaves the rules before, and without the file all is on again.
func TestChangeAtRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := open(t)
		write(t, root, original)
		f, err := Open(root, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var b bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- f.Watch(ctx, slog.New(slog.NewTextHandler(&b, nil))) }()
		for i, tc := range []struct {
			file   string
			events bool
			says   string
		}{
			{`{"vicos":{"levels":[{"level":"event","enabled":false}]}}`, false, "changed"},
			{`{"vicos":{"levels":[{"level":"loud","enabled":false}]}}`, false, `level \"loud\": want debug`},
			{`{"linux":{}}`, false, `no \"vicos\"`},
			{`{"vicos":{"channels":[{"enabled":true}]}}`, false, "channel 1 of 1: want a name"},
			{`{"vicos":`, false, "invalid"},
			{original, true, "changed"},
			{"", true, "changed"},
		} {
			b.Reset()
			if tc.file == "" {
				err = root.Remove(File)
			} else {
				write(t, root, tc.file)
				err = root.Chtimes(File, time.Now(), time.Now().Add(time.Duration(i)*time.Second))
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(look)
			synctest.Wait()
			if f.Events() != tc.events || !strings.Contains(b.String(), tc.says) {
				t.Errorf("after %s: events %v, log %s; want %v and %s", tc.file, f.Events(), b.String(), tc.events, tc.says)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(original))
	f.Add([]byte(`{"vicos":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parse(b); (r == nil) == (err == nil) {
			t.Errorf("rules %v and error %v", r, err)
		}
	})
}

// TestPrintedExample (30.5): the page that names the file says where it is below a robot's root, and shows one that does what the page says.
func TestPrintedExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(page, []byte("`ROBOT/"+File+"`"))
	if i < 0 {
		t.Fatalf("docs/start.md does not say where %s is", File)
	}
	_, example, _ := strings.Cut(string(page[i:]), "\n    {")
	example, _, _ = strings.Cut(example, "\n")
	r, err := parse([]byte("{" + example))
	if err != nil || r.channel("link") || !r.channel("voice") || r.level("info", true) || !r.level("error", true) {
		t.Errorf("{%s: %+v, %v; want the channel link and the level info off", example, r, err)
	}
}
