package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/robotpb"
	"kennel/jdocs"
)

// TestSettings: a program reads the robot's settings with what each may be, and changes them; they are on disk then. A wrong name or value changes nothing.
func TestSettings(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	get := func() map[string]*robotpb.Setting {
		a, err := r.Settings(as("all"), &robotpb.SettingsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*robotpb.Setting{}
		for _, s := range a.Settings {
			all[s.Name] = s
		}
		return all
	}
	s, _ := jdocs.SchemaOf(jdocs.RobotSettings)
	was := get()
	if len(was) != len(s.Fields) {
		t.Errorf("%d settings, want %d", len(was), len(s.Fields))
	}
	eyes, custom := was["eye_color"], was["custom_eye_color"]
	if eyes.Type != "enum" || eyes.Value.GetStringValue() != "TIP_OVER_TEAL" || !slices.Contains(eyes.Values, "SINGULARITY_SAPPHIRE") || len(custom.Fields) != 3 || custom.Fields[0].Name != "enabled" {
		t.Errorf("%v, %v", eyes, custom)
	}
	for _, body := range []string{`{"settings":{"eye_color":"SINGULARITY_SAPPHIRE","clock_24_hour":true,"custom_eye_color.hue":0.25}}`, `{"settings":{"eye_color":4}}`} {
		if code, a := d.post(t, "all", "change", body); code != http.StatusOK {
			t.Errorf("%s: %d %s", body, code, a)
		}
		now := get()
		if now["eye_color"].Value.GetStringValue() != "SINGULARITY_SAPPHIRE" || !now["clock_24_hour"].Value.GetBoolValue() || now["custom_eye_color"].Fields[1].Value.GetNumberValue() != 0.25 {
			t.Errorf("after %s: %v", body, now)
		}
	}
	file := filepath.Join(d.dir, robotfs.Persistent, "jdocs/vic.RobotSettings.json")
	before, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(before), `"hue": 0.25`) {
		t.Errorf("%s, %v", before, err)
	}
	for name, v := range map[string]any{"eye_color": 9, "eye_colour": 1, "time_zone": "nowhere at all", "custom_eye_color.hue": 1.5, "clock_24_hour": nil, "": 1} {
		x, err := structpb.NewValue(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Change(as("all"), &robotpb.ChangeRequest{Settings: map[string]*structpb.Value{name: x, "dist_is_metric": structpb.NewBoolValue(true)}}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q = %v: %v", name, v, err)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("after wrong changes: %s, %v", after, err)
	}
}
