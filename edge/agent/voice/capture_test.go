package voice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/testwait"
	"kennel/infra/wav"
)

// captured returns the names of the files.
func (b *bench) captured(t *testing.T) (names []string) {
	t.Helper()
	all, err := fs.ReadDir(b.root.FS(), CaptureDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// session calls the robot and gives it an answer, after as many pieces of sound.
func (b *bench) session(t *testing.T, pieces int) (r Request, sound []byte) {
	t.Helper()
	press(b, "single")
	r = testwait.For(t, b.far.asked, "a session")
	audio := testwait.For(t, b.far.audio, "its sound")
	for range pieces {
		sound = append(sound, testwait.For(t, audio, "a piece")...)
	}
	b.far.answer <- nil
	return r, sound
}

// TestCapture: a developer's robot whose owner allows it keeps the sound of its newest sessions as the cloud got it and tells the name of each file
// (VEC-NLP-10); any other robot keeps none, and what was kept goes.
func TestCapture(t *testing.T) {
	b := newBench(t, nil)
	allowed := true
	b.cfg.Capture = true
	b.cfg.Settings = func() Settings { return Settings{SkipDAS: !allowed} }
	told := make(chan string, 16)
	b.cfg.Told = func(e Event) {
		if e.CloudIntent != nil {
			told <- e.CloudIntent.Type + " " + e.CloudIntent.File
		}
	}
	if err := b.root.MkdirAll(CaptureDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxCaptures + 2 { // of days long ago
		if err := robotfs.WriteFile(b.root, fmt.Sprintf("%s/00000000000000%02d.wav", CaptureDir, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.play(t, t.Context())
	b.awaitEars(t)
	r, sound := b.session(t, 4)
	name := CaptureDir + "/" + r.Session + ".wav"
	if got := testwait.For(t, told, "the file"); got != "debugFile /data/data/com.anki.victor/cache/cloud_intents/"+r.Session+".wav" {
		t.Errorf("told %q", got)
	}
	raw, err := b.root.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := wav.ParseWhole(raw)
	if err != nil || s.Rate != 16000 || s.Channels != 1 || !strings.HasPrefix(string(raw[44:]), string(sound)) {
		t.Errorf("%+v, %v; want the %d bytes that the cloud got first", s, err, len(sound))
	}
	if all := b.captured(t); len(all) != maxCaptures || !slices.Contains(all, r.Session+".wav") || slices.Contains(all, "0000000000000002.wav") {
		t.Errorf("kept %q, want the newest %d", all, maxCaptures)
	}
	b.until(t, 0, 1)
	for _, capture := range []bool{true, false} {
		b.Voice.cfg.Capture = capture // the loop reads it at the beginning of a session, and none is open
		allowed = !capture
		_, last := b.Since(context.Background(), 0)
		b.session(t, 1)
		b.until(t, last, 1)
		if all := b.captured(t); len(all) != 0 {
			t.Errorf("developer %v, allowed %v: kept %q", capture, allowed, all)
		}
		if err := robotfs.WriteFile(b.root, CaptureDir+"/0.wav", nil, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	c := &capture{session: "a"}
	for range 2 * maxCaptured / 1000 {
		c.add(make([]byte, 1000))
	}
	if len(c.pcm) > 320000 || len(c.pcm) < 319000 {
		t.Errorf("%d bytes of a session, want at most 10 s", len(c.pcm))
	}
}
