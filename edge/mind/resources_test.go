package mind_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path"
	"testing"

	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
)

// TestResources: a robot's own sprites, in the folder of its resources, go before those that come with Kennel.
func TestResources(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	red := image.NewNRGBA(image.Rect(0, 0, face.Width, face.Height))
	draw.Draw(red, red.Rect, image.NewUniform(color.NRGBA{255, 0, 0, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, red); err != nil {
		t.Fatal(err)
	}
	if err := robotfs.WriteFile(root, path.Join(robotfs.Resources, "assets/sprites/spriteSequences/FACE_weather_snow/snow_00.png"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	robotdtest.Start(t, root.Name(), display)
	d := &desk{Client: mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Sound: mindtest.Synthesizer{}.Sound()}), ctx: t.Context()}
	began, _ := d.play(t, d.ctx, mindlink.Request{Clip: "anim_weather_snow_01", Loops: mindlink.MaxLoops, Program: "a"})
	for _, x := range began.LeftOut {
		if x.Track == "display" {
			t.Errorf("left out %+v", x)
		}
	}
	d.shows(t, "the robot's own picture", func(p *face.Picture) bool {
		for _, v := range p.Pix {
			if v != 0xf800 {
				return false
			}
		}
		return true
	})
}
