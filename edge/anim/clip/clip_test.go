package clip

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/face"
)

// all has every track and every field (part of VEC-AFF-04 to 19).
var all = []Clip{{Name: "anim_all_01", Tracks: Tracks{
	Lift: []Lift{{0, 300, 60, 0}, {400, 200, 32, 3}},
	Face: []Face{{ScaleX: 1, ScaleY: 1, ScanlineOpacity: 1}, {100, -5.5, 10, -4.25, 1.5, 0.75,
		[]float32{0, 0, 1, 1, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0.3, 0, 0.7},
		[]float32{1, 2, 1.5, 0.5, 10, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.25, -20, -0.5, 0.125, 20, 1, 0.9, -1, 0.4, -0.3, 0.6, 0.2}, 0.5}},
	Head: []Head{{0, 300, -20, 0}, {500, 300, 45, 2}},
	Audio: []Audio{{50, []AudioGroup{{[]uint32{1355168291, 651061178}, []float32{1, 0.5}, []float32{0.25, 0.75}}, {[]uint32{7}, []float32{0.125}, []float32{1}}},
		[]AudioState{{9, 4294967295}}, []AudioState{{3, 5}}, []AudioParameter{{8, -1.5, 250, 4}}}},
	Backpack: []Backpack{{Trigger: 0, Duration: 100, Front: []float32{1, 0, 0, 1}, Middle: []float32{0, 1, 0, 1}, Back: []float32{0, 0, 1, 1}}, {Trigger: 300, Front: []float32{0.2, 0.4, 0.6, 1}}},
	Sprites:  []Sprites{{600, "weather_sunny", 0.25}},
	Events:   []Event{{10, "TAPPED_BLOCK"}},
	Body:     []Body{{0, 300, Straight, -60}, {400, 300, TurnInPlace, 90}, {800, 200, "-75", 40}},
	Record:   []Record{{5}},
	Return:   []Return{{1200, 500, -30, 180, 900, 1000, 3, 1, true}},
	Boxes:    []Box{{0, "icon", "overlay", "clock 1", "CustomHue", "Loop", 50, -4, 7, 40, 30}},
}}, {Name: "anim_none_01"}}

// forms are the three ways to write clips.
var forms = map[string]struct {
	parse  func([]byte) ([]Clip, error)
	append func([]byte, []Clip) ([]byte, error)
}{"binary": {ParseBinary, AppendBinary}, "json": {ParseJSON, AppendJSON}, "text": {ParseText, AppendText}}

// TestBinary reads testdata/all.bin, which the makers' own compiler, flatc 2.0.8, made of the schema as the rows have it (part of VEC-AFF-01 to 19).
func TestBinary(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "all.bin"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseBinary(b)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, all)
	}
	if got, err := ParseBinary([]byte{12, 0, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 4, 0, 0, 0}); err != nil || len(got) != 0 {
		t.Errorf("without clips: %v %v", got, err) // VEC-AFF-02
	}
	if p := got[0].Check(Vector); len(p) > 0 || got[0].Span() != 1700*time.Millisecond {
		t.Errorf("%v %v", p, got[0].Span())
	}
}

// TestRound: what each form writes it reads again, and all forms say the same (VEC-TRG-08, part of VEC-AFF-21).
func TestRound(t *testing.T) {
	for name, f := range forms {
		b, err := f.append(nil, all)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := f.parse(b)
		want := all
		if name == "text" { // it writes whole eyes
			want = []Clip{all[0], all[1]}
			want[0].Tracks.Face = nil
			for i := range all[0].Tracks.Face {
				p, err := all[0].Tracks.Face[i].Params()
				if err != nil {
					t.Fatal(err)
				}
				want[0].Tracks.Face = append(want[0].Tracks.Face, FaceOf(all[0].Tracks.Face[i].Trigger, &p))
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%s\n%+v", name, err, b, got)
		}
	}
}

// TestJSON: defaults, both names of states, a radius as a number, and refusals with line and column.
func TestJSON(t *testing.T) {
	got, err := ParseJSON([]byte(`{"a": [
  {"Name": "RobotAudioKeyFrame", "triggerTime_ms": 1, "state": [{"stateGroupId": 2, "stateId": 3}]},
  {"Name": "BodyMotionKeyFrame", "radius_mm": -75.5, "speed": 3},
  {"Name": "ProceduralFaceKeyFrame"}, {"Name": "TurnToRecordedHeadingKeyFrame"}
]}`))
	want := []Clip{{Name: "a", Tracks: Tracks{Audio: []Audio{{Trigger: 1, States: []AudioState{{2, 3}}}}, Body: []Body{{Radius: "-75.5", Speed: 3}},
		Face: []Face{{ScaleX: 1, ScaleY: 1, ScanlineOpacity: 1}}, Return: []Return{{Accel: 1000, Decel: 1000, Tolerance: 2}}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", err, got)
	}
	for text, where := range map[string]string{
		``:            "line 1, column 1:",
		`[]`:          "line 1,",
		"{\n\"a\": 3": "line 2,",
		"{\"a\": [\n  {\"Name\": \"HeadAngleKeyFrame\", \"angle_deg\": 300}]}":            "line 2,",
		"{\"a\": [\n\n  {\"Name\": \"HeadKeyFrame\"}]}":                                   "line 3, column 3:",
		"{\"a\": [{\"Name\": \"HeadAngleKeyFrame\",\n \"angle\": 3}]}":                    "angle",
		"{\"a\": [{\"Name\": \"HeadAngleKeyFrame\"}, {\"Name\": \"HeadAngleKeyFrame\"}]}": "HeadAngleKeyFrame[1].triggerTime_ms",
		`{"a": [], "a": []}`:                 "clip 1",
		`{"": []}`:                           "clip 0",
		`{"a": [{"Name": "EventKeyFrame"}]}`: "event_id",
		`{"a": []} x`:                        "line 1, column 11:",
		`{"a": [{"Name": "HeadAngleKeyFrame", "triggerTime_ms": -1}]}`:                               "triggerTime_ms",
		`{"a": [{"Name": "FaceAnimationKeyFrame", "animName": "` + strings.Repeat("x", 201) + `"}]}`: "animName",
	} {
		if _, err := ParseJSON([]byte(text)); !errors.Is(err, ErrClip) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v, want %s", text, err, where)
		}
	}
}

// TestText: what people write, and refusals with line and column.
func TestText(t *testing.T) {
	got, err := ParseText([]byte("# greetings\nclip a # one\n\n500 head -5 over=100\n0\thead 20 vary=2 over=300\n0 face happy left.eye_center_x=3\n" +
		"0 sound Init volume=0.5 | Animation chance=0.25\n0 state 4 5\n0 event \"a b=c\"\n0 lights front=#ff0000 for=40\nclip b\n"))
	happy, _ := face.Expression("happy")
	happy.Left[face.EyeCenterX] = 3
	want := []Clip{{Name: "a", Tracks: Tracks{Head: []Head{{0, 300, 20, 2}, {500, 100, -5, 0}}, Face: []Face{FaceOf(0, &happy)}, Events: []Event{{0, "a b=c"}},
		Audio:    []Audio{{0, []AudioGroup{{[]uint32{1355168291, 3994535597}, []float32{0.5, 1}, []float32{1, 0.25}}}, []AudioState{{4, 5}}, nil, nil}},
		Backpack: []Backpack{{Duration: 40, Front: []float32{1, 0, 0, 1}}}}}, {Name: "b"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
	for text, where := range map[string]string{
		"0 head 3":                           "line 1, column 1:",
		"clip":                               "line 1, column 1:",
		"clip a b":                           "line 1, column 1:",
		"clip a\nx head 3":                   "line 2, column 1:",
		"clip a\n0":                          "line 2, column 1:",
		"clip a\n0 ears 3":                   "line 2, column 3:",
		"clip a\n0 head":                     "line 2, column 3:",
		"clip a\n0 head 3 4":                 "line 2, column 10:",
		"clip a\n0 head 300":                 "line 2, column 8:",
		"clip a\n0 head 3 over=1 over=2":     "line 2, column 17:",
		"clip a\n0 head 3 soon=1":            "line 2, column 10:",
		"clip a\n0 event \"open":             "line 2, column 9:",
		"clip a\n0 face glad":                "line 2, column 8:",
		"clip a\n0 face happy eye_scale_x=x": "line 2, column 14:",
		"clip a\n0 lights top=#000000":       "line 2, column 10:",
		"clip a\n0 lights front=#00000":      "line 2, column 10:",
		"clip a\n0 lights front=1,NaN,0":     "line 2, column 10:",
		"clip a\n0 sound":                    "line 2, column 3:",
		"clip a\n0 sound a |":                "line 2, column 3:",
		"clip a\n0 sound a b":                "line 2, column 11:",
		"clip a\n0 sound volume=1":           "line 2, column 9:",
		"clip a\n0 state 3":                  "line 2, column 3:",
		"clip a\n0 parameter 3 x":            "line 2, column 15:",
		"clip a\n0 parameter 3 4 in=5":       "line 2, column 17:",
		"clip a\n4294967296 head 3":          "line 2, column 1:",
		"clip a\nclip a":                     "clip 1",
		"clip a\n0 head 3\n0 head 4":         "HeadAngleKeyFrame[1].triggerTime_ms",
	} {
		if _, err := ParseText([]byte(text)); !errors.Is(err, ErrClip) || !strings.Contains(err.Error(), where) {
			t.Errorf("%q: %v, want %s", text, err, where)
		}
	}
}

// TestCheck: each absurd number is refused by clip, track, keyframe and field.
func TestCheck(t *testing.T) {
	for line, where := range map[string]string{
		"0 head 46":                 "HeadAngleKeyFrame[0].angle_deg",
		"0 head -23":                "HeadAngleKeyFrame[0].angle_deg",
		"0 head 0 vary=100":         "HeadAngleKeyFrame[0].angleVariability_deg",
		"0 lift 31":                 "LiftHeightKeyFrame[0].height_mm",
		"0 lift 93":                 "LiftHeightKeyFrame[0].height_mm",
		"0 lift 40 over=4000000000": "LiftHeightKeyFrame[0].durationTime_ms",
		"600001 lift 40":            "LiftHeightKeyFrame[0].triggerTime_ms",
		"0 body STRAIGHT 221":       "BodyMotionKeyFrame[0].speed",
		"0 body TURN_IN_PLACE -361": "BodyMotionKeyFrame[0].speed",
		"0 body 24 111":             "BodyMotionKeyFrame[0].speed", // the outer wheel turns at 222 mm/s
		"0 body 0 10":               "BodyMotionKeyFrame[0].radius_mm",
		"0 body left 10":            "BodyMotionKeyFrame[0].radius_mm",
		"0 body NaN 10":             "BodyMotionKeyFrame[0].radius_mm",
		"0 return speed=400":        "TurnToRecordedHeadingKeyFrame[0].speed_degPerSec",
		"0 return accel=0":          "TurnToRecordedHeadingKeyFrame[0].accel_degPerSec2",
		"0 lights front=2,0,0":      "BackpackLightsKeyFrame[0].Front",
		"0 sprites x scanlines=1.5": "FaceAnimationKeyFrame[0].scanlineOpacity",
		"0 box a layer=b asset=c method=d end=Hold":              "SpriteBoxKeyFrame[0].renderMethod",
		"0 box a layer=b asset=c method=RGBA end=Hold width=185": "SpriteBoxKeyFrame[0].width",
		"0 sound a volume=1.5":                                   "RobotAudioKeyFrame[0].volumes",
		"0 sound a chance=0":                                     "RobotAudioKeyFrame[0].probabilities",
		"0 parameter a 1e9":                                      "RobotAudioKeyFrame[0].value",
	} {
		clips, err := ParseText([]byte("clip a\n" + line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		p := clips[0].Check(Vector)
		if len(p) != 1 || !errors.Is(p[0], ErrClip) || !strings.Contains(p[0].Error(), "a: "+where) || p[0].Expected == "" || p[0].Found == "" {
			t.Errorf("%s: %v, want %s", line, p, where)
		}
	}
	c := Clip{Name: "a", Tracks: Tracks{Face: []Face{{ScaleX: 11}}}}
	if p := c.Check(Vector); len(p) != 1 || p[0].Field != "face_scale_x" || p[0].Expected != "0 to 10" || p[0].Found != "11" {
		t.Errorf("%+v", p)
	}
	c = Clip{Name: "a", Tracks: Tracks{Face: []Face{{Left: make([]float32, 14)}}}}
	if p := c.Check(Vector); len(p) != 1 || p[0].Found != "14 values" && p[0].Found != "14" {
		t.Errorf("%+v", p)
	}
	c = Clip{Name: "a", Tracks: Tracks{Backpack: []Backpack{{Front: make([]float32, 4), Older: make([]float32, 3)}}}}
	if p := c.Check(Vector); len(p) != 1 || p[0].Field != "Front" {
		t.Errorf("%+v", p)
	}
}

// TestSoundID: the ids that VEC-SND-03 gives.
func TestSoundID(t *testing.T) {
	for name, want := range map[string]uint32{"Init": 1355168291, "Robot_Vic_Stimulation": 651061178, "Animation": 3994535597, "Procedural": 3915564212} {
		if got := SoundID(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// fuzz: what a form reads, it writes and reads to the same bytes.
func fuzz(f *testing.F, name string) {
	form := forms[name]
	b, err := form.append(nil, all)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		clips, err := form.parse(b)
		if err != nil {
			if !errors.Is(err, ErrClip) {
				t.Fatal(err)
			}
			return
		}
		for i := range clips {
			clips[i].Check(Vector)
			clips[i].Span()
		}
		first, err := form.append(nil, clips)
		if err != nil && name != "binary" {
			if errors.Is(err, ErrClip) { // values that no face has, numbers that JSON cannot say
				return
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := form.parse(first)
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		second, err := form.append(nil, again)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v\n%s\n%s", err, first, second)
		}
	})
}

func FuzzBinary(f *testing.F) { fuzz(f, "binary") }
func FuzzJSON(f *testing.F)   { fuzz(f, "json") }
func FuzzText(f *testing.F)   { fuzz(f, "text") }
