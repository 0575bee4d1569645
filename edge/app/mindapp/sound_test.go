package mindapp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/infra/testwait"
)

// talks is the part of a body with a loudspeaker.
var talks = robot.Part{Path: "voice", Is: []string{"TextToSpeech"}, Uses: map[string][]string{"TextToSpeech": {"robot.body.speaker"}}}

// TestVolume: the robot plays as loud as its owner chose, and not at all when muted (VEC-SND-12); the text of a robot without settings has the synthesiser's language.
func TestVolume(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	robotdtest.Start(t, root.Name(), talks)
	s, err := Sound(root, slog.New(slog.DiscardHandler), "none", "")
	if err != nil {
		t.Fatal(err)
	}
	if l := s.Language(); l != "" {
		t.Errorf("language %q", l)
	}
	square := &sound.Sound{Rate: mindlink.SoundRate, Samples: make([]float32, mindlink.SoundRate/5)}
	for i := range square.Samples {
		square.Samples[i] = 0.25
	}
	s.Banks = []*bank.Bank{bank.One("beep", square)}
	c := mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Sound: s})
	for _, x := range []struct {
		settings string
		peak     int16
	}{{`{"jdoc": {"master_volume": 5, "locale": "de-DE"}}`, 8192}, {`{"jdoc": {"master_volume": 4}}`, 4106}, {`{"jdoc": {"master_volume": 0}}`, 0}, {`{"jdoc": {"master_volume": 7}}`, 0}, {`{"jdoc": {"master_volume": 1}}`, 517}} {
		if err := robotfs.WriteFile(root, settingsFile, []byte(x.settings), 0o644); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, time.Minute, x.settings, func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ready, listened, peak := make(chan struct{}), make(chan struct{}), int16(0)
			go func() {
				defer close(listened)
				_ = c.Listen(ctx, func(p mindlink.Piece) error {
					if len(p.Samples) == 0 && p.Said == nil {
						close(ready)
					}
					for _, v := range p.Samples {
						peak = max(peak, v)
					}
					return nil
				})
			}()
			<-ready
			e, err := c.Sound(ctx, mindlink.Sound{Name: "beep", Program: "a"}, func(mindlink.Progress) error { return nil })
			cancel()
			<-listened
			if err != nil || e.Outcome != mindlink.Done || peak != x.peak {
				return fmt.Errorf("%+v, %v: peak %d, want %d", e, err, peak, x.peak)
			}
			return nil
		})
	}
	if _, err := Sound(root, slog.New(slog.DiscardHandler), "loud", ""); err == nil {
		t.Error("another place")
	}
}

// TestSilent: for a body with a loudspeaker, a machine without a player and a player that dies are fault 911; one that plays is none, and a body without a loudspeaker has no such
// fault (VEC-SND-13).
func TestSilent(t *testing.T) {
	mute := robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}}
	for name, tc := range map[string]struct {
		player string // its script; "": there is none
		part   robot.Part
		want   string
	}{"no player": {"", talks, "911\n"}, "dies": {"exit 1", talks, "911\n"}, "plays": {"exec /bin/cat >/dev/null", talks, ""}, "no loudspeaker": {"", mute, ""}} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		posted := func() string { b, _ := root.ReadFile(faults.File); return string(b) }
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin)
			if tc.player != "" {
				if err := os.WriteFile(filepath.Join(bin, "aplay"), []byte("#!/bin/sh\n"+tc.player+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			robotdtest.Start(t, root.Name(), tc.part)
			s, err := Sound(root, slog.New(slog.DiscardHandler), "device", "")
			if err != nil {
				t.Fatal(err)
			}
			c := mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Sound: s})
			testwait.Until(t, testwait.Long, name, testwait.Holds(func() bool { return len(s.Broken) == 0 && (tc.want == "" || posted() == tc.want) }))
			if _, err := c.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if got := posted(); got != tc.want {
			t.Errorf("%s: posted %q, want %q", name, got, tc.want)
		}
	}
}
