package mind_test

import (
	"context"
	"testing"

	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
)

// TestSprites: the sprites of a clip are over its face for as long as it plays, also for a program that looks on; one that the robot does not have is left out, and the caller
// hears of it (VEC-AFF-14, VEC-DSP-02).
func TestSprites(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	// The eyes of this robot have no red.
	snows := func(p *face.Picture) bool {
		flakes, eyes := 0, 0
		for _, v := range p.Pix {
			if v>>11 > 24 {
				flakes++
			} else if v>>11 == 0 && v>>5&63 > 24 {
				eyes++
			}
		}
		return flakes > 20 && eyes > 200
	}
	playing, stop := context.WithCancel(d.ctx)
	began, ended := d.play(t, playing, mindlink.Request{Clip: "anim_snows", Program: "a"})
	if len(began.LeftOut) != 1 || began.LeftOut[0].Track != "display" {
		t.Errorf("left out %+v", began.LeftOut)
	}
	d.shows(t, "snow over the eyes", snows)
	stop()
	<-ended
	d.shows(t, "the eyes alone", func(p *face.Picture) bool {
		for _, v := range p.Pix {
			if v>>11 != 0 {
				return false
			}
		}
		return true
	})
}
