package mindapp

import (
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"testing"

	"kennel/edge/face"
)

// TestColor: the eyes have the colour that the settings name, with the hue and saturation of the source or of the robot's own file (VEC-DOC-03).
func TestColor(t *testing.T) {
	teal, green := face.Color{Hue: 0.42, Saturation: 1}, face.Color{Hue: 0.30, Saturation: 1}
	for name, tt := range map[string]struct {
		file, settings string
		want           face.Color
		wrong          string // in the log
	}{
		"as the source":      {"", `{"eye_color":6}`, green, ""},
		"not chosen":         {"", `{}`, teal, ""},
		"of the file":        {`{"CONFUSION_MATRIX_GREEN": {"Hue": 0.5, "Saturation": 0.25}, "TIP_OVER_TEAL": {"Hue": 0.1}}`, `{"eye_color":6}`, face.Color{Hue: 0.5, Saturation: 0.25}, ""},
		"half of it":         {`{"TIP_OVER_TEAL": {"Hue": 0.1}}`, `{"eye_color":0}`, face.Color{Hue: 0.1, Saturation: 1}, ""},
		"the owner's":        {`{"TIP_OVER_TEAL": {"Hue": 0.1}}`, `{"eye_color":0,"custom_eye_color":{"enabled":true,"hue":0.7,"saturation":0.6}}`, face.Color{Hue: 0.7, Saturation: 0.6}, ""},
		"no such name":       {`{"MAUVE": {"Hue": 0.1}, "CONFUSION_MATRIX_GREEN": {"Hue": 0.5}}`, `{"eye_color":6}`, green, "MAUVE"},
		"no such hue":        {`{"TIP_OVER_TEAL": {"Hue": 1.5}}`, `{}`, teal, "expected 0 to 1, found 1.5"},
		"not a file of JSON": {`{"TIP_OVER_TEAL"`, `{}`, teal, "eye_color_config.json"},
	} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"anki/data/assets/cozmo_resources/config/engine/eye_color_config.json": tt.file, settingsFile: fmt.Sprintf(`{"jdoc":%s}`, tt.settings)} {
			if text == "" {
				continue
			}
			if err := root.MkdirAll(path.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := root.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		got, ok := Color(root, slog.New(slog.NewTextHandler(&log, nil)))()
		if !ok || got != tt.want || (log.String() == "") != (tt.wrong == "") || !strings.Contains(log.String(), tt.wrong) {
			t.Errorf("%s: %v, %v, want %v; log %q", name, got, ok, tt.want, log.String())
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	}
}
