package teleop

import (
	"bytes"
	"context"
	"image/jpeg"
	"log/slog"
	"sync/atomic"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/infra/api/live"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Own defaults of the pictures in frames.
const (
	displayTime    = time.Second     // for one
	displayPause   = 5 * time.Second // after one failed
	displayQuality = 85              // of 100: an eye or a page of text has 2 to 6 kB
)

// Screen is a robot's display (mindlink.Client). An error with code "unable": the body has none.
type Screen interface {
	Frame(ctx context.Context) (mindlink.Frame, error)
}

// display takes pictures of the display for frames, as long as the robot's owner allows data collection: programs may show there what they like, also pictures of people.
type display struct {
	screen  Screen
	allowed atomic.Bool

	// Of the goroutine that makes frames.
	paused time.Time // until when no picture is taken
	shown  bool      // the look under way has shown one
}

// picture returns what the display shows as JPEG; nil: the owner does not allow it, the body has no display, or its character does not answer.
func (d *display) picture(ctx context.Context, log *slog.Logger) []byte {
	if !d.allowed.Load() || time.Now().Before(d.paused) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, displayTime)
	defer cancel()
	f, err := d.screen.Frame(ctx)
	var b bytes.Buffer
	if err == nil {
		err = jpeg.Encode(&b, f.Picture, &jpeg.Options{Quality: displayQuality})
	}
	switch {
	case err != nil:
		d.paused = time.Now().Add(displayPause)
		if errs.CodeOf(err) != "unable" {
			log.DebugContext(ctx, "live frame without the display", logging.Err, err)
		}
		return nil
	case b.Len() > live.MaxDisplay || !d.allowed.Load(): // the owner may have withdrawn meanwhile
		return nil
	}
	d.shown = true
	return b.Bytes()
}
