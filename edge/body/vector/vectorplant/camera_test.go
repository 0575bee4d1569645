package vectorplant

import (
	"math"
	"testing"

	"kennel/edge/core/control"
	"kennel/edge/robot"
)

// TestCamera: the camera's settings begin as a Vector takes pictures (GOSTAI-IF-17.4 to 17.7, 17.9 to 17.11), change without a claim, all or none, and say what
// was taken: another resolution is another size (GOSTAI-IF-17.10), a format that the camera cannot make is the closest that it can (GOSTAI-IF-17.12).
func TestCamera(t *testing.T) {
	d := newDesk(t)
	d.step()
	shows := func(want map[string]float64) {
		t.Helper()
		for name, v := range want {
			if got, ok := d.value("camera." + name); !ok || got != v {
				t.Errorf("camera.%s is %v, %v; want %v", name, got, ok, v)
			}
		}
	}
	shows(map[string]float64{"width": 640, "height": 360, "format": robot.FormatJPEG, "exposure": 0, "gain": 1, "resolution": 1, "quality": 75})
	r := d.ask(set(alice, map[string]float64{"camera.exposure": 0.01, "camera.format": robot.FormatNV12, "camera.gain": 9, "camera.resolution": 0}))
	if r.Code != control.OK || r.Underway || r.Taken[0] != 0.01 || r.Taken[1] != robot.FormatRGB || r.Taken[2] != 4 || r.Taken[3] != 0 {
		t.Errorf("%+v", r)
	}
	shows(map[string]float64{"width": 1280, "height": 720, "format": robot.FormatRGB, "exposure": 0.01, "gain": 4, "resolution": 0, "quality": 75})
	for _, o := range []control.Order{quick(set(alice, map[string]float64{"camera.gain": 1}), 1), set(alice, map[string]float64{"camera.gain": 1, "camera.quality": math.NaN()})} {
		if r := d.ask(o); r.Code != control.Invalid {
			t.Errorf("%+v", r)
		}
	}
	shows(map[string]float64{"gain": 4})
}
