package mickit

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/infra/cli"
	"kennel/infra/wav"
)

func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit"}
	root.AddCommand(Mic(), Wake())
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// TestMicRecord: the recordings play: four channels as they are, and one as it is processed (VEC-MIC-07).
func TestMicRecord(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() // read only
	s, err := miclink.Listen(root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- s.Run(ctx) }()
	go func() { // the body
		var f geometry.Frame
		for n := uint32(1); ctx.Err() == nil; n++ {
			for i := range f {
				f[i] = geometry.Idle + int16(1000*(i%4)) + int16(n%2*50)
			}
			s.Tap(n, time.Duration(n)*5120*time.Microsecond, &f)
			time.Sleep(time.Millisecond)
		}
		done <- nil
	}()
	for _, tc := range []struct {
		args     []string
		channels int
		frames   int
	}{{[]string{"-raw"}, 4, 39 * 80}, {nil, 1, 19 * 160}} {
		out := filepath.Join(dir, "out.wav")
		code, says, errs := run(t, append([]string{"mic", "record", "-root", dir, "-for", "200ms", "-out", out, "-o", "json"}, tc.args...)...)
		var told recorded
		if err := json.Unmarshal([]byte(says), &told); err != nil || code != cli.ExitOK || told.Channels != tc.channels {
			t.Fatalf("code %d, %s%s, %v", code, says, errs, err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		sound, err := wav.Parse(b)
		if err != nil || sound.Channels != tc.channels || len(sound.Samples) != tc.channels*tc.frames {
			t.Fatalf("%d samples of %d channels, %v", len(sound.Samples), sound.Channels, err)
		}
		if d := sound.Samples[3] - sound.Samples[0]; tc.channels == 4 && d != 3000 {
			t.Errorf("the fourth channel is %d over the first", d)
		}
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-root", dir, "-out", "x"}, cli.ExitUnavailable, "whose robotd runs"},
		{[]string{"-root", dir, "-out", "x", "-for", "11m"}, cli.ExitUsage, "at most 10m"},
	} {
		if code, out, errs := run(t, append([]string{"mic", "record"}, tc.args...)...); code != tc.code || !strings.Contains(errs, tc.want) {
			t.Errorf("code %d, %s%s; want %d, %q", code, out, errs, tc.code, tc.want)
		}
	}
}

// TestWake: a model that is trained here hears its word in another recording and not in other speech.
func TestWake(t *testing.T) {
	dir := t.TempDir()
	say := func(speed, text string) string {
		name := filepath.Join(dir, strings.ReplaceAll(text, " ", "_")+speed+".wav")
		if out, err := exec.Command("espeak-ng", "-s", speed, "-w", name, text).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := wav.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		quiet := make([]int16, s.Rate/4)
		s.Samples = append(append(quiet, s.Samples...), quiet...)
		if err := os.WriteFile(name, wav.Append(nil, s), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	model := filepath.Join(dir, "rex.kws")
	code, out, errs := run(t, "wake", "train", say("150", "good morning rex"), say("165", "good morning rex"), say("180", "good morning rex"),
		"-against", say("160", "what time is it now in the kitchen"), "-against", say("150", "the quick brown fox jumps over the lazy dog"), "-word", "rex", "-model", model)
	if code != cli.ExitOK || !strings.Contains(out, `"rex" from 3 `) {
		t.Fatalf("code %d, %s%s", code, out, errs)
	}
	code, out, errs = run(t, "wake", "try", say("158", "good morning rex"), say("158", "please set a timer for ten minutes"), "-model", model, "-o", "json")
	var got []tried
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitOK || len(got) != 2 || !got[0].Hit || got[0].End <= got[0].Begin || got[1].Hit {
		t.Errorf("code %d, %s%s, %v", code, out, errs, err)
	}
	if code, _, errs := run(t, "wake", "train", filepath.Join(dir, "none.wav"), "-against", model, "-model", model); code == cli.ExitOK || !strings.Contains(errs, "none.wav") {
		t.Errorf("code %d, %s", code, errs)
	}
}
