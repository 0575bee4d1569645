package animkit

import (
	"bytes"
	"encoding/json"
	"image/gif"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/edge/anim/clip"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/face"
	"kennel/edge/robot"
	"kennel/infra/cli"
)

func run(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit", Short: "x", Example: "x"}
	root.AddCommand(Anim(), Face())
	root.SetIn(strings.NewReader(stdin))
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

const nod = "clip nod\n0 face happy\n0 head 20 over=200\n200 head 0 over=200\n50 sound 7\n"

// desk goes to an empty folder with nod.clip.
func desk(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("nod.clip", []byte(nod), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestList: the clips that come with Kennel, with their triggers.
func TestList(t *testing.T) {
	code, out, errOut := run(t, "", "anim", "list", "-o", "json")
	var rows []listed
	if err := json.Unmarshal([]byte(out), &rows); code != cli.ExitOK || err != nil || len(rows) < 12 {
		t.Fatal(code, err, errOut)
	}
	for _, r := range rows {
		if r.MS <= 0 || r.Parts == "" || len(r.Triggers) == 0 {
			t.Errorf("%+v", r)
		}
	}
	desk(t)
	if code, out, _ := run(t, "", "anim", "list", "nod.clip"); code != cli.ExitOK || !strings.Contains(out, "nod   400  display, audio, head") {
		t.Error(code, out)
	}
}

// TestCheck: good clips exit 0, an absurd number 1 with clip, track, keyframe and field, a file that is none 1 with its line.
func TestCheck(t *testing.T) {
	desk(t)
	if code, out, _ := run(t, "", "anim", "check"); code != cli.ExitOK || !strings.Contains(out, " 0 problems") {
		t.Error(code, out)
	}
	code, out, _ := run(t, "clip a\n0 head 20 over=10\n50 head 90 over=10\n", "anim", "check", "-", "-o", "json")
	var problems []struct {
		Clip, Track, Field, Expected, Found string
		Keyframe                            int
	}
	if err := json.Unmarshal([]byte(out), &problems); code != 1 || err != nil || len(problems) != 1 || problems[0].Track != "HeadAngleKeyFrame" || problems[0].Keyframe != 1 || problems[0].Found != "90" {
		t.Error(code, out, err)
	}
	code, _, errOut := run(t, "clip a\n0 event LISTENING_BEGIN\n50 event STRAIGHT\n90 event DANCE_BEAT_SYNC\n", "anim", "check", "-")
	if code != cli.ExitOK || strings.Count(errOut, "warning") != 1 || !strings.Contains(errOut, "EventKeyFrame[1].event_id") { // part of VEC-AFF-20
		t.Error(code, errOut)
	}
	if code, _, errOut := run(t, "clip a\n0 ears 3", "anim", "check", "-"); code == cli.ExitOK || !strings.Contains(errOut, "line 2, column 3") {
		t.Error(code, errOut)
	}
	if code, _, _ := run(t, "", "anim", "check", "nothing.clip"); code == cli.ExitOK {
		t.Error(code)
	}
}

// TestBuild: a clip goes through all three forms and back, and the manifest has its duration (VEC-TRG-09).
func TestBuild(t *testing.T) {
	desk(t)
	for _, step := range [][2]string{{"nod.clip", "nod.bin"}, {"nod.bin", "nod.json"}, {"nod.json", "again.clip"}, {"again.clip", "again.bin"}} {
		if code, _, errOut := run(t, "", "anim", "build", step[0], step[1]); code != cli.ExitOK {
			t.Fatal(step, code, errOut)
		}
	}
	first, err1 := os.ReadFile("nod.bin")
	again, err2 := os.ReadFile("again.bin")
	if err1 != nil || err2 != nil || !bytes.Equal(first, again) || len(first) < 100 {
		t.Errorf("%v %v %x", err1, err2, again)
	}
	if code, out, _ := run(t, "", "anim", "dump", "nod.bin"); code != cli.ExitOK || !strings.Contains(out, "head    20 over=200") {
		t.Error(code, out)
	}
	if code, out, _ := run(t, "", "anim", "dump", "nod.bin", "-o", "json"); code != cli.ExitOK || !strings.Contains(out, `"angle_deg":20`) {
		t.Error(code, out)
	}
	var manifest []struct {
		MS   int    `json:"length_ms"`
		Name string `json:"name"`
	}
	code, out, _ := run(t, "", "anim", "manifest", "nod.bin")
	if err := json.Unmarshal([]byte(out), &manifest); code != cli.ExitOK || err != nil || len(manifest) != 1 || manifest[0].MS != 400 || manifest[0].Name != "nod" {
		t.Error(code, out, err)
	}
	if code, _, _ := run(t, "", "anim", "build", "nod.clip", "nod.txt"); code != cli.ExitUsage {
		t.Error(code)
	}
	if code, _, errOut := run(t, "clip a\n0 lift 5", "anim", "build", "-", "a.bin"); code == cli.ExitOK || !strings.Contains(errOut, "height_mm") {
		t.Error(code, errOut)
	}
}

// TestPreview: pictures of the clip and of a second after it, in which the face is another one.
func TestPreview(t *testing.T) {
	desk(t)
	if code, _, errOut := run(t, "", "anim", "preview", "nod.clip", "nod.gif", "-zoom", "1", "-clip", "nod"); code != cli.ExitOK {
		t.Fatal(code, errOut)
	}
	f, err := os.Open("nod.gif")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gif.DecodeAll(f)
	if err != nil || len(g.Image) != 43 || bytes.Equal(g.Image[5].Pix, g.Image[40].Pix) {
		t.Errorf("%v: %d pictures", err, len(g.Image))
	}
	for _, args := range [][]string{{"-o", "named.gif"}, {}} {
		code, out, errOut := run(t, "", append([]string{"anim", "preview", "nod.clip", "-clip", "nod", "-zoom", "1", "-o", "json"}, args...)...)
		file := "nod.gif"
		if len(args) > 0 {
			file = args[1]
		}
		if info, err := os.Stat(file); code != cli.ExitOK || err != nil || info.Size() == 0 || !strings.Contains(out, `"`+file+`"`) {
			t.Errorf("%q: %d %s%s, %v", args, code, out, errOut, err)
		}
	}
	for _, args := range [][]string{{"nod.clip", "x.gif", "-o", "y.gif", "-clip", "nod"}, {"nod.clip", "x.gif", "-clip", "nid"}, {"nod.clip", "x.gif", "-zoom", "9"}, {"nothing", "x.gif"}} {
		if code, _, _ := run(t, "", append([]string{"anim", "preview"}, args...)...); code == cli.ExitOK {
			t.Errorf("%v", args)
		}
	}
}

// TestFace: a picture of a face, and words that no face has.
func TestFace(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errOut := run(t, "", "face", "sad.png", "sad", "face_angle=4", "-hue", "0.57", "-zoom", "3"); code != cli.ExitOK {
		t.Fatal(code, errOut)
	}
	f, err := os.Open("sad.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != 3*face.Width {
		t.Fatal(err, img.Bounds())
	}
	if r, _, b, _ := img.At(3*55, 3*58).RGBA(); b < 3*r || b < 0x4000 { // sapphire
		t.Errorf("%v", img.At(3*55, 3*58))
	}
	for _, args := range [][]string{{"x.png", "glad"}, {"x.png", "upper_lid_y=2"}, {"x.png", "-hue", "1.5"}} {
		if code, _, _ := run(t, "", append([]string{"face"}, args...)...); code != cli.ExitUsage {
			t.Errorf("%v: %d", args, code)
		}
	}
}

// TestSlots: a Vector's tree has a slot of every name that clips set.
func TestSlots(t *testing.T) {
	tree, err := vectordriver.Tree()
	if err != nil {
		t.Fatal(err)
	}
	f := clip.Frame{Has: clip.AllParts}
	find := robot.Finder{Tree: tree}
	for _, s := range f.AppendSetPoints(nil) {
		find.Slot(s.Name)
	}
	if find.Err != nil {
		t.Error(find.Err)
	}
}
