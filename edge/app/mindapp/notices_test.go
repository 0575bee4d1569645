package mindapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/coreserver/robotdtest"
	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/faultcode"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/infra/testwait"
)

// TestNotices: the display shows how far an update is, instead of it the claim code, instead of both the number of a fault, and the eyes again afterwards
// (part of VEC-FLT-10).
func TestNotices(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	robotdtest.Start(t, root.Name(), robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}})
	c := mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Notices: Notices(root), Color: Color(root, slog.New(slog.DiscardHandler))})
	shows := func(what string, is func(*face.Picture) bool) {
		t.Helper()
		testwait.Until(t, time.Minute, what, func() error {
			seen := errors.New("seen")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.Watch(ctx, mindlink.MaxRate, func(f mindlink.Frame) error {
				if !is(f.Picture) {
					return errors.New("another picture")
				}
				return seen
			})
			if errors.Is(err, seen) {
				return nil
			}
			return err
		})
	}
	notice := func(big, words string) func(*face.Picture) bool {
		want := face.Notice(big, words)
		return func(p *face.Picture) bool { return *p == *want }
	}
	put := func(name, text string) {
		t.Helper()
		if err := robotfs.WriteFile(root, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"phase": "download", "expected-download-size": "4000", "progress": "1000"} {
		put("run/update-engine/"+name, text)
	}
	shows("an update", notice("25 %", "Installing an update"))
	put(claim.CodeFile, "K7QM-3XW9\n")
	shows("a code", notice("K7QM-3XW9", "Claim code: type it on your robot's page"))
	put(faults.ShowingFile, "898\n")
	shows("a fault", notice("898", faultcode.Code(898).Text()))
	if err := errors.Join(root.RemoveAll("run/update-engine"), root.Remove(claim.CodeFile), root.Remove(faults.ShowingFile)); err != nil {
		t.Fatal(err)
	}
	red := func(v uint16) bool { return v&0x07ff == 0 }
	put(settingsFile, `{"jdoc": {"eye_color": 4, "custom_eye_color": {"enabled": true, "hue": 0, "saturation": 1}}}`)
	shows("red eyes, as the owner chose", func(p *face.Picture) bool {
		return !slices.ContainsFunc(p.Pix[:], func(v uint16) bool { return !red(v) })
	})
	put(settingsFile, `{"jdoc": {"eye_color": 4, "custom_eye_color": {"enabled": false, "hue": 0, "saturation": 1}}}`)
	shows("blue eyes", func(p *face.Picture) bool { // hue 0.57 has most blue, and no red
		return slices.ContainsFunc(p.Pix[:], func(v uint16) bool { return v&31 > 20 }) && !slices.ContainsFunc(p.Pix[:], func(v uint16) bool { return v>>11 > 8 })
	})
	put(settingsFile, `{"jdoc": {"eye_color": 99}}`)
	shows("the eyes", func(p *face.Picture) bool {
		for _, v := range p.Pix {
			if v == 0xffff {
				return false // letters are white, and eyes are not
			}
		}
		return true
	})
}

// TestVolume: the robot plays as loud as its owner chose, and not at all when muted (VEC-SND-12); the text of a robot without settings has the synthesiser's language.
func TestVolume(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	robotdtest.Start(t, root.Name(), robot.Part{Path: "voice", Is: []string{"TextToSpeech"}, Uses: map[string][]string{"TextToSpeech": {"robot.body.speaker"}}})
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
