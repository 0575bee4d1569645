package animkit

import (
	"image/gif"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/cli"
)

// TestCompose: a layout with Kennel's battery at its place, in the colour of the eyes; what is missing is said (VEC-DSP-04).
func TestCompose(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"assets/cladToFileMaps/CompositeImageLayoutMap.json":        `[{"CladEvent": "Charge", "LayoutName": "charge"}]`,
		"assets/cladToFileMaps/CompositeImageMapMap.json":           `[{"CladEvent": "Full", "MapName": "full"}, {"CladEvent": "Odd", "MapName": "odd"}]`,
		"assets/compositeImageResources/imageLayouts/charge.json":   `[{"layerName": "L", "images": [{"spriteBoxName": "B", "spriteRenderMethod": "CustomHue", "x": 100, "y": 50, "width": 60, "height": 30}]}]`,
		"assets/compositeImageResources/imageMaps/full.json":        `[{"layerName": "L", "images": [{"spriteBoxName": "B", "spriteName": "FACE_Battery"}]}]`,
		"assets/compositeImageResources/imageMaps/digits/odd.json":  `[{"layerName": "L", "images": [{"spriteBoxName": "B", "spriteName": "nothing"}]}]`,
		"assets/compositeImageResources/imageMaps/digits/note.text": "",
	} {
		if err := os.MkdirAll(filepath.Join("res", filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("res", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errOut := run(t, "", "anim", "compose", "Charge", "Full", "-resources", "res", "-zoom", "1", "-hue", "0"); code != cli.ExitOK || !strings.Contains(out, "Full.gif") {
		t.Fatal(code, out, errOut)
	}
	f, err := os.Open("Full.gif")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gif.DecodeAll(f)
	if err != nil || len(g.Image) != 30 {
		t.Fatalf("%d pictures, %v", len(g.Image), err)
	}
	for at, want := range map[[2]int]bool{{102, 65}: true, {99, 65}: false, {130, 48}: false, {130, 65}: false} { // its frame, beside it, above it, in it
		if r, gr, b, _ := g.Image[0].At(at[0], at[1]).RGBA(); (r > 0x8000) != want || gr != 0 || b != 0 {
			t.Errorf("%v: %x %x %x", at, r, gr, b)
		}
	}
	for _, args := range [][]string{{"Charge", "Odd", "-resources", "res"}, {"Charge", "None", "-resources", "res"}, {"Charge", "Full"}, {"Charge", "Full", "-resources", "res", "-for", "2h"}} {
		if code, _, errOut := run(t, "", append([]string{"anim", "compose"}, args...)...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v: %d", args, code)
		}
	}
	if err := os.WriteFile("snow.clip", []byte("clip anim_x\n0 face happy\n0 sprites face_weather_snow\n10 sprites nothing\n100 face sad\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run(t, "", "anim", "preview", "snow.clip", "-resources", "res", "-zoom", "1"); code != cli.ExitOK || !strings.Contains(errOut, "nothing") || strings.Contains(errOut, "face_weather_snow") {
		t.Errorf("preview: %d %s", code, errOut)
	}
	if code, _, errOut := run(t, "", "anim", "check", "snow.clip"); code != cli.ExitOK || strings.Count(errOut, "warning") != 1 || !strings.Contains(errOut, "nothing") {
		t.Errorf("check: %d %s", code, errOut)
	}
}
