package soundkit

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/sound"
	"kennel/infra/cli"
)

func run(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit", Short: "x", Example: "x"}
	root.AddCommand(Sound(), Say())
	root.SetIn(strings.NewReader(stdin))
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// read runs a command with -o json, and reads what it prints into v.
func read(t *testing.T, v any, args ...string) {
	t.Helper()
	code, out, errOut := run(t, "", append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), v); code != cli.ExitOK || err != nil {
		t.Fatal(args, code, err, errOut)
	}
}

const bark = "sound bark\n0 tone 400 for=500 gain=0.5 attack=0 release=0\nevent twice\nplay bark\nplay bark\nevent silence\nmute\n"

func desk(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bark.sounds", []byte(bark), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSounds: Kennel's sounds and those of a file are listed, made and measured.
func TestSounds(t *testing.T) {
	desk(t)
	var rows []listed
	if read(t, &rows, "sound", "list"); len(rows) < 80 || rows[0].Kind != "event" || rows[len(rows)-1].MS == 0 {
		t.Errorf("%d rows", len(rows))
	}
	if read(t, &rows, "sound", "list", "-f", "bark.sounds"); len(rows) != 3 || rows[1].Name != "twice" || rows[1].MS != 500 {
		t.Errorf("%+v", rows)
	}
	var made written
	if read(t, &made, "sound", "make", "-f", "bark.sounds", "-volume", "0.5", "-rate", "8000", "twice", "twice.wav"); math.Abs(made.Seconds-1) > 0.01 {
		t.Errorf("%+v", made)
	}
	var m measured
	if read(t, &m, "sound", "info", "twice.wav"); m.Rate != 8000 || m.Bits != 16 || m.Channels != 1 || math.Abs(m.Seconds-made.Seconds) > 0.001 || math.Abs(m.PeakDB+12) > 0.5 || math.Abs(m.PitchHz-400) > 5 {
		t.Errorf("%+v", m)
	}
	if read(t, &made, "sound", "make", "Kennel_Held_Purr", "purr.wav"); made.Seconds != longest.Seconds() {
		t.Errorf("a loop: %+v", made)
	}
	if err := os.WriteFile("a.clip", []byte("clip a\n0 sound bark\n700 sound twice volume=0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if read(t, &made, "sound", "clip", "-f", "bark.sounds", "a.clip", "clip.wav"); math.Abs(made.Seconds-1.7) > 0.05 {
		t.Errorf("a clip of a file: %+v", made)
	}
	read(t, &made, "sound", "clip", "anim_mood_happy_01", "happy.wav")
	if read(t, &m, "sound", "info", "happy.wav"); m.RMSDB < -40 || m.Seconds != made.Seconds {
		t.Errorf("a clip of Kennel's: %+v", m)
	}
	for _, args := range [][]string{{"sound", "clip", "anim_no", "a.wav"}, {"sound", "clip", "-f", "bark.sounds", "anim_mood_happy_01", "a.wav"}, {"sound", "make", "Kennel_Nothing", "a.wav"}, {"sound", "make", "-f", "bark.sounds", "silence", "a.wav"}, {"sound", "make", "bark", "a.wav", "-f", "no.sounds"},
		{"sound", "make", "Kennel_Photo", "a.wav", "-rate", "3"}, {"sound", "make", "Kennel_Photo", "a.wav", "-volume", "0"}, {"sound", "info", "bark.sounds"}, {"sound", "play", "bark.sounds"}} {
		if code, _, errOut := run(t, "", args...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v: code %d", args, code)
		}
	}
	if err := os.WriteFile("bark.sounds", []byte("sound bark\n0 tone 4000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, errOut := run(t, "", "sound", "list", "-f", "bark.sounds"); !strings.Contains(errOut, "line 2, column 8:") {
		t.Error(errOut)
	}
}

// TestPlay: a sound is played by the program that is installed; without one the error names what to install.
func TestPlay(t *testing.T) {
	desk(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if code, _, errOut := run(t, "", "sound", "play", "Kennel_Photo"); code == cli.ExitOK || !strings.Contains(errOut, "alsa-utils") {
		t.Error(code, errOut)
	}
	if err := os.WriteFile(dir+"/aplay", []byte("#!/bin/sh\nexec /bin/cat >"+dir+"/played\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tone := &sound.Sound{Rate: 16_000, Samples: make([]float32, 1600)}
	for i := range tone.Samples {
		tone.Samples[i] = 0.25
	}
	if err := os.WriteFile("a.wav", tone.AppendWAV(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := run(t, "", "sound", "play", "a.wav", "-volume", "0.5")
	b, err := os.ReadFile(dir + "/played")
	if code != cli.ExitOK || err != nil || !bytes.Contains(b, bytes.Repeat([]byte{0, 0x10}, 1000)) {
		t.Error(code, errOut, err, len(b))
	}
	if err := os.WriteFile(dir+"/aplay", []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run(t, "", "sound", "play", "a.wav"); code == cli.ExitOK || !strings.Contains(errOut, "sound card") {
		t.Error(code, errOut)
	}
}

// TestAloud: a running robot says a text, in its own voice or plain; what only a file has is refused, and so is a robot that does not run.
func TestAloud(t *testing.T) {
	dir := t.TempDir()
	robotdtest.Start(t, dir, mindtest.Voice)
	mindtest.With(t, dir, mind.Own{Motions: mindtest.None, Sound: mindtest.Synthesizer{Span: 300 * time.Millisecond}.Sound()})
	for _, more := range [][]string{nil, {"-character", "plain"}, {"-duration", "2", "-language", "de"}} {
		var e mindlink.Ended
		if read(t, &e, append([]string{"say", "Hello.", "-root", dir}, more...)...); e.Outcome != mindlink.Done || e.AtMS < 300 {
			t.Errorf("%v: %+v", more, e)
		}
	}
	for _, args := range [][]string{{"-root", dir, "-volume", "0.5"}, {"-root", dir, "-character", "tin"}, {"-root", t.TempDir()}, {"-root", dir, "-duration", "21"}} {
		if code, _, errOut := run(t, "", append([]string{"say", "Hello."}, args...)...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v: code %d", args, code)
		}
	}
}

// TestSay: a text becomes a file in a character's voice, at the pace and pitch that were asked for, also by a server.
func TestSay(t *testing.T) {
	desk(t)
	var plain, vector, slow spoken
	read(t, &plain, "say", "Hello, I am your robot.", "-character", "plain", "-synth", "flite", "-o", "plain.wav", "-visemes")
	read(t, &vector, "say", "Hello, I am your robot.", "-synth", "flite", "-o", "vector.wav")
	read(t, &slow, "say", "Hello, I am your robot.", "-synth", "flite", "-character", "plain", "-duration", "2", "-pitch", "1", "-o", "slow.wav")
	if plain.Character != "plain" || len(plain.Visemes) < 10 || !plain.Timed || vector.Character != "vector" || math.Abs(vector.PitchHz-235) > 20 || plain.PitchHz == vector.PitchHz {
		t.Errorf("%+v\n%+v", plain, vector)
	}
	if r := slow.Seconds / plain.Seconds; math.Abs(r-2) > 0.05 || math.Abs(slow.PitchHz/plain.PitchHz-math.Sqrt2) > 0.08 {
		t.Errorf("%.2f times as long, %.0f Hz of %.0f", r, slow.PitchHz, plain.PitchHz)
	}
	var m measured
	if read(t, &m, "sound", "info", "vector.wav"); m.Rate != rate || math.Abs(m.Seconds-vector.Seconds) > 0.001 {
		t.Errorf("%+v", m)
	}
	if code, out, errOut := run(t, "Guten Tag.", "say", "-", "-language", "de", "-o", "de.wav"); code != cli.ExitOK || !strings.Contains(out, "espeak-ng") {
		t.Error(code, out, errOut)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b, err := os.ReadFile("plain.wav")
		if err != nil {
			t.Error(err)
		}
		w.Write(b)
	}))
	defer server.Close()
	var served spoken
	if read(t, &served, "say", "Hello.", "-synth", server.URL, "-character", "plain", "-o", "served.wav"); math.Abs(served.Seconds-plain.Seconds) > 0.001 {
		t.Errorf("%+v", served)
	}
	for _, args := range [][]string{{"say", "..."}, {"say", "a", "-character", "pirate"}, {"say", "a", "-synth", "festival"}, {"say", "a", "-duration", "21"}, {"say", "a", "-pitch", "2"},
		{"say", "a", "-rate", "1"}, {"say", "a", "-volume", "2"}, {"say", "a", "-voice", "-x"}, {"say", "a", "-synth", "http://"}} {
		if code, _, errOut := run(t, "", append(args, "-o", "no.wav")...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v: code %d", args, code)
		}
	}
	if _, err := os.Stat("no.wav"); err == nil {
		t.Error("a refused text was written")
	}
}
