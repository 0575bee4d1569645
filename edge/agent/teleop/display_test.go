package teleop

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/live"
	"kennel/infra/errs"
)

// screenOf is a display that shows one grey, or does not.
type screenOf struct {
	asked atomic.Int64
	err   atomic.Pointer[error]
	hangs atomic.Bool
}

func (s *screenOf) Frame(ctx context.Context) (mindlink.Frame, error) {
	s.asked.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return mindlink.Frame{}, ctx.Err()
	}
	if err := s.err.Load(); err != nil {
		return mindlink.Frame{}, *err
	}
	p := &face.Picture{}
	for i := range p.Pix {
		p.Pix[i] = 0x8410
	}
	return mindlink.Frame{Seq: 1, Picture: p}, nil
}

// TestDisplay: frames have the display's picture during a look, if the owner allows it; the last one of a look has none. A display that is not there, or
// does not answer, costs no frame.
func TestDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, frames := start(t)
		s := &screenOf{}
		p.Display(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		allow := func(c host.Consent) { p.consent(c) }
		// look returns which frames of a look had a picture.
		look := func() (with []bool) {
			t.Helper()
			before := len(frames())
			p.Look([]byte(`{"v":1,"for_ms":4000}`))
			time.Sleep(10 * time.Second)
			for _, f := range frames()[before:] {
				with = append(with, f.f.Display != nil)
			}
			return with
		}
		none := []bool{false, false, false, false, false, false, false, false}
		all := []bool{true, true, true, true, true, true, true, true, false}
		for _, tc := range []struct {
			name string
			do   func()
			want []bool
		}{
			{"before the cloud has said whose it is", func() {}, none},
			{"the owner does not allow it", func() { allow(host.Consent{Owned: true}) }, none},
			{"the owner allows it", func() { allow(host.Consent{Owned: true, DataCollection: true}) }, all},
			{"no owner", func() { allow(host.Consent{}) }, all},
			{"withdrawn in the middle", func() { time.AfterFunc(2*time.Second+live.Every/2, func() { allow(host.Consent{Owned: true}) }) },
				[]bool{true, true, true, true, true, false, false, false, false}},
			{"no display", func() { allow(host.Consent{}); err := errs.Coded(errs.Invalid, "unable", "none"); s.err.Store(&err) }, none},
			{"no character", func() { err := errors.New("lost"); s.err.Store(&err) }, none},
			{"there again", func() { s.err.Store(nil) }, all},
		} {
			tc.do()
			if got := look(); !slices.Equal(got, tc.want) {
				t.Errorf("%s: pictures %v, want %v", tc.name, got, tc.want)
			}
		}
		asked := s.asked.Load()
		s.hangs.Store(true)
		if got := look(); slices.Contains(got, true) || len(got) < 6 || s.asked.Load() != asked+1 {
			t.Errorf("a character that hangs: pictures %v, asked %d times", got, s.asked.Load()-asked)
		}
		for _, f := range frames() {
			if f.f.Display == nil {
				continue
			}
			got, err := jpeg.Decode(bytes.NewReader(f.f.Display))
			if err != nil || got.Bounds().Dx() != face.Width || got.Bounds().Dy() != face.Height {
				t.Fatalf("%v, %v", got, err)
			}
			if r, _, _, _ := got.At(90, 50).RGBA(); r>>8 < 0x7c || r>>8 > 0x8c {
				t.Errorf("grey is %#x", r>>8)
			}
			break
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
