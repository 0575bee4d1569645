package mind

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path"
	"testing"

	"kennel/edge/anim/repertoire"
	"kennel/edge/env/robotfs"
)

// TestResources: a robot's own sprites, in the folder of its resources, go before those that come with Kennel.
func TestResources(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dir := robotfs.Resources + "/assets/sprites/spriteSequences/FACE_weather_snow"
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 184, 96))); err != nil {
		t.Fatal(err)
	}
	if err := root.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(path.Join(dir, "snow_00.png"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	own := repertoire.Sprites(resources(root))
	for name, want := range map[string]int{"face_weather_snow": 1, "face_weather_rain": 24} {
		if s, err := own.Get(name); err != nil || s.Len() != want {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}
