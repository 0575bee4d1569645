package notices_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/app/mindapp"
	"kennel/edge/app/mindapp/notices"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/edge/faultcode"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/infra/testwait"
	"kennel/jdocs"
)

// The files of the robot that the display follows.
const (
	settingsFile = robotfs.Persistent + "/jdocs/" + string(jdocs.RobotSettings) + ".json"
	filmFile     = robotfs.Resources + "/config/engine/animations/boot_anim.raw"
)

// TestNotices: the display shows how far an update is, instead of it the claim code, instead of both the number of a fault with the notice that the robot restarts if it
// will, and the eyes again afterwards (VEC-FLT-10, VEC-DGN-03).
func TestNotices(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	robotdtest.Start(t, root.Name(), robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}})
	c := mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Notices: notices.Of(root, func(string) string { return "" }), Color: mindapp.Color(root, slog.New(slog.DiscardHandler))})
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
	page := func(s screen.Screen) func(*face.Picture) bool {
		return func(p *face.Picture) bool {
			for _, at := range []time.Duration{0, 400 * time.Millisecond, 800 * time.Millisecond} { // of a page that moves
				if *p == *screen.Picture(s, at) {
					return true
				}
			}
			return false
		}
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
	shows("an update", page(screen.Update{Done: 1000, Of: 4000}))
	put(claim.CodeFile, "K7QM-3XW9\n")
	shows("a code", page(screen.Pairing{Code: "K7QM-3XW9"}))
	put(faults.ShowingFile, "898\n")
	shows("a fault", page(screen.Fault{Code: "898", Words: faultcode.Code(898).Text()}))
	put(platform.FaultHandlerFile, "ON_FAULT_RESTART=1\n")
	shows("a fault that restarts", page(screen.Fault{Code: "898", Words: faultcode.Code(898).Text(), Restarts: true}))
	put(faults.ShowingFile, "740\n") // for which nothing is stopped
	shows("a fault that does not restart", page(screen.Fault{Code: "740", Words: faultcode.Code(740).Text()}))
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

// TestBoot: the robot's own film is shown while it starts, or Kennel's, and nothing afterwards; a file that is no film is logged (part of VEC-DSP-03).
func TestBoot(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const frame = 2 * face.Width * face.Height
	for _, tc := range []struct {
		file  int // bytes
		pixel uint16
		wrong bool
	}{{0, 0, false}, {frame, 0x0707, false}, {frame - 1, 0, true}} {
		if tc.file > 0 {
			if err := errors.Join(root.MkdirAll(path.Dir(filmFile), 0o755), root.WriteFile(filmFile, bytes.Repeat([]byte{7}, tc.file), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		now := time.Hour
		boot := notices.Boot(root, slog.New(slog.NewTextHandler(&log, nil)), func() time.Duration { return now })
		s := boot()
		if s == nil || s != boot() || screen.Picture(s, 0).Pix[0] != tc.pixel || strings.Contains(log.String(), "boot_anim.raw") != tc.wrong {
			t.Errorf("%d bytes: %T, log %q", tc.file, s, log.String())
		}
		if now += 3 * time.Second; boot() != nil {
			t.Errorf("%d bytes: the start is still shown", tc.file)
		}
	}
}
