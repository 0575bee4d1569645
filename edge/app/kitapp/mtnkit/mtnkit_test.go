package mtnkit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/cli"
)

func run(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit", Short: "x", Example: "x"}
	root.AddCommand(MTN())
	root.SetIn(strings.NewReader(stdin))
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, append([]string{"mtn"}, args...), func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// rise is a motion without a fault, as a person writes it.
const rise = `mtn
format DRX-910
name a_sleep#sit_rise
joints all
pose 0 HEAD_PITCH=-10 MOUTH=-3 FL_LEG_VERT=60 FL_LEG_KNEE=30 FR_LEG_VERT=60 FR_LEG_KNEE=30 BL_LEG_VERT=-115 BL_LEG_KNEE=145 BR_LEG_VERT=-115 BR_LEG_KNEE=145
pose 640ms HEAD_PITCH=-25 FL_LEG_VERT=0 FL_LEG_KNEE=10 FR_LEG_VERT=0 FR_LEG_KNEE=10 BL_LEG_VERT=-90 BL_LEG_KNEE=135 BR_LEG_VERT=-90 BR_LEG_KNEE=135
`

// desk makes a folder with rise.txt and rise.mtn, and goes there.
func desk(t *testing.T) []byte {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("rise.txt", []byte(rise), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run(t, "", "build", "rise.txt", "rise.mtn"); code != cli.ExitOK || !strings.Contains(out, "20 joints, 2 keyframes, 640ms") {
		t.Fatal(code, out, errOut)
	}
	return read(t, "rise.mtn")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDumpAndBuild: build makes the same bytes of each form that dump prints, also of a file with an odd layout, and through pipes (MTN-59).
func TestDumpAndBuild(t *testing.T) {
	good := desk(t)
	odd := slices.Concat(good[:0x20], []byte{good[0x20] + 4, 0, 0, 0}, good[0x24:0x24+int(good[0x20])-8], []byte{0, 0, 0, 0}, good[0x1C+int(good[0x20]):], []byte("tail"))
	if err := os.WriteFile("odd.mtn", odd, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"rise.mtn": good, "odd.mtn": odd} {
		for _, form := range []string{"", "-csv", "--csv", "-o json"} {
			code, text, errOut := run(t, "", append([]string{"dump", name}, strings.Fields(form)...)...)
			if code != cli.ExitOK {
				t.Fatal(code, errOut)
			}
			if code, out, errOut := run(t, text, "build", "-", "-"); code != cli.ExitOK || out != string(want) {
				t.Errorf("%s, %q: %d %s\n%x\n%x", name, form, code, errOut, out, want)
			}
		}
	}
	_, text, _ := run(t, "", "dump", "rise.mtn", "-o", "json")
	var got struct {
		Version   string
		Rate      int
		Strings   struct{ Name, Author, Format string }
		Joints    []string
		Keyframes []struct {
			Interp int
			RPY    []int
			Joints []int
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Version != "1.2" || got.Rate != 16 || got.Strings.Author != mtn.Author || len(got.Joints) != 20 ||
		len(got.Keyframes) != 2 || got.Keyframes[1].Interp != 39 || got.Keyframes[0].Joints[0] != -174532 {
		t.Errorf("%v %s", err, text)
	}
}

// TestCheck: exit codes, and the findings of good, odd and bad files (MTN-51).
func TestCheck(t *testing.T) {
	good := desk(t)
	files := map[string][]byte{
		"trailing.mtn": append(bytes.Clone(good), 0),
		"cut.mtn":      good[:100],
		"name.mtn":     bytes.Replace(good, []byte("a_sleep"), []byte("x_sleep"), 1),
		"other.mtn":    []byte("RIFF"),
		"bad.txt":      []byte("mtn\nwings\n"),
	}
	for name, b := range files {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		file         string
		code, strict int
		want         string
	}{
		{"rise.mtn", 0, 0, ""},
		{"rise.txt", 0, 0, ""},
		{"trailing.mtn", 0, 1, mtn.CodeTail},
		{"name.mtn", 0, 1, motions.CodePart},
		{"cut.mtn", 1, 1, mtn.CodeBlockLength},
		{"other.mtn", 1, 1, mtn.CodeSignature},
		{"bad.txt", 1, 1, "text"},
		{"none.mtn", cli.ExitNotFound, cli.ExitNotFound, ""},
	} {
		for _, strict := range []bool{false, true} {
			args, want := []string{"check", tc.file, "-o", "json"}, tc.code
			if strict {
				args, want = append(args, "-strict"), tc.strict
			}
			code, out, errOut := run(t, "", args...)
			if code != want {
				t.Errorf("%v: exit %d, want %d: %s", args, code, want, errOut)
			}
			if code == cli.ExitNotFound {
				continue
			}
			var all []struct {
				Good     bool
				Findings []struct{ Code string }
			}
			if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Good != (want == 0) {
				t.Fatalf("%v: %v, %s", args, err, out)
			}
			if f := all[0].Findings; tc.want == "" && len(f) != 0 || tc.want != "" && (len(f) == 0 || f[0].Code != tc.want) {
				t.Errorf("%v: %v, want %s", args, f, tc.want)
			}
		}
	}
	if code, out, _ := run(t, "", "check", "rise.mtn", "cut.mtn"); code != 1 || !strings.Contains(out, "rise.mtn: good\ncut.mtn: bad\n  error: offset ") {
		t.Errorf("%d\n%s", code, out)
	}
}

// TestRows: -rows prints the vendor's rows in the order of the file (MTN-54), -device those of the model's joints.
func TestRows(t *testing.T) {
	desk(t)
	code, out, errOut := run(t, "", "play", "rise.mtn", "-rows")
	if code != cli.ExitOK {
		t.Fatal(errOut)
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 81 || rows[0][0] != "ms" || rows[0][1] != "PRM:/r1/c1-Joint2:j1" || rows[1][1] != "-174532" || rows[80][0] != "632" {
		t.Fatalf("%v, %d rows: %v", err, len(rows), rows)
	}
	for f := range 80 {
		if want := fmt.Sprint(-174532 - 3272*f); rows[f+1][1] != want { // (436332-174532)/80 = 3272.5
			t.Errorf("row %d: %s, want %s", f, rows[f+1][1], want)
		}
	}
	if _, two, _ := run(t, "", "play", "rise.mtn", "--rows", "-speed", "2", "-rule", "linear"); strings.Count(two, "\n") != 1+41 {
		t.Errorf("twice as fast: %d lines", strings.Count(two, "\n"))
	}
	_, out, _ = run(t, "", "play", "rise.mtn", "-rows", "-device", "-from", "stand", "-limits", "-rule", "cosine")
	rows, _ = csv.NewReader(strings.NewReader(out)).ReadAll()
	if last := rows[len(rows)-1]; rows[0][1] != "robot.body.head.pitch" || last[1] != "0.436332" || len(rows) < 81+62 { // nose down is positive
		t.Errorf("%d rows, %v", len(rows), last)
	}
	// A robot that sits and is to rise from sleeping lies down first, with joints that the motion does not move too (MTN-53).
	tail := "mtn\nformat DRX-910\nname t_sit#sit_wag\njoints TAIL_HORZ\npose 0\npose 320ms TAIL_HORZ=10\n"
	_, out, _ = run(t, tail, "play", "-", "-rows", "-device", "-from", "stand")
	rows, _ = csv.NewReader(strings.NewReader(out)).ReadAll()
	if last := rows[len(rows)-1]; last[slices.Index(rows[0], "robot.body.leg[back][left].knee.pitch")] != "-2.356194" || last[slices.Index(rows[0], "robot.body.tail.yaw")] == "0" {
		t.Errorf("%v\n%v", rows[0], last)
	}
	code, out, errOut = run(t, "", "play", "rise.mtn", "-o", "json")
	var s played
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != cli.ExitOK || s.Rows != 80 || s.LeadIn != 0 || s.Stop != "sit" || s.Model != "ers-210" {
		t.Errorf("%d %v %+v %s", code, err, s, errOut)
	}
	if _, out, _ = run(t, "", "play", "rise.mtn", "-o", "json", "-speed", "4", "-limits", "-from", "stand", "-rule", "cosine"); json.Unmarshal([]byte(out), &s) != nil ||
		len(s.Stretched) != 1 || s.LeadIn < 60 {
		t.Errorf("%s", out)
	}
	for _, args := range []string{"-rows -rule x", "-loops 0", "-speed 9", "-device", "-rows -limits", "-rows -o json", "-from fly", "-on ers-9"} {
		if code, _, errOut := run(t, "", append([]string{"play", "rise.mtn"}, strings.Fields(args)...)...); code != cli.ExitUsage {
			t.Errorf("%s: exit %d %s", args, code, errOut)
		}
	}
	long := strings.Replace(rise, "640ms", "4000000000", 1)
	if code, _, errOut := run(t, long, "play", "-", "-rows"); code != cli.ExitFailed || !strings.Contains(errOut, "10000000 rows") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, _ := run(t, strings.Replace(rise, "DRX-910", "DRX-2000", 1), "play", "-"); code != cli.ExitFailed {
		t.Errorf("unknown format: %d", code)
	}
}

// TestEdits: each edit writes a file that check takes.
func TestEdits(t *testing.T) {
	good := desk(t)
	for _, tc := range []struct {
		args string
		code int
	}{
		{"mirror rise.mtn out.mtn", 0}, {"reverse rise.mtn out.mtn", 0}, {"scale rise.mtn out.mtn -time 1.5", 0}, {"limit rise.mtn out.mtn", 0},
		{"blend rise.mtn rise.txt out.mtn -weight 0.25", 0}, {"retarget rise.mtn out.mtn -to ers7", 0}, {"retarget rise.mtn out.mtn -to DRX-801 -o json", 0},
		{"scale rise.mtn out.mtn -time 0", 2}, {"blend rise.mtn rise.txt out.mtn -weight 2", 2}, {"retarget rise.mtn out.mtn -to ers8", 2},
		{"retarget rise.mtn out.mtn", 2}, {"mirror none.mtn out.mtn", 3}, {"mirror", 2}, {"blend rise.mtn", 2}, {"limit rise.mtn none/out.mtn", 1},
	} {
		_ = os.Remove("out.mtn") // of the case before
		code, out, errOut := run(t, "", strings.Fields(tc.args)...)
		if code != tc.code {
			t.Errorf("%s: exit %d, want %d: %s%s", tc.args, code, tc.code, out, errOut)
		}
		if _, err := os.Stat("out.mtn"); (err == nil) != (tc.code == 0) {
			t.Errorf("%s: %v", tc.args, err)
		}
		if tc.code == 0 {
			if code, out, _ := run(t, "", "check", "out.mtn"); code != 0 {
				t.Errorf("%s: %s", tc.args, out)
			}
		}
	}
	if _, out, _ := run(t, "", "retarget", "rise.mtn", "out.mtn", "-to", "ers-7"); !strings.Contains(out, "BL_LEG_KNEE at 122.00 degrees instead of 145.00") ||
		!strings.Contains(out, "HEAD_ROLL left out") {
		t.Error(out)
	}
	for _, args := range []string{"mirror rise.mtn -", "mirror rise.mtn", "scale -time 2 rise.mtn", "blend rise.mtn rise.mtn", "build rise.txt", "build"} {
		if code, out, errOut := run(t, rise, strings.Fields(args)...); code != 0 || len(out) != len(good) {
			t.Errorf("%s to standard output: %d, %d bytes %s", args, code, len(out), errOut)
		}
	}
	if code, out, _ := run(t, "", "diff", "rise.mtn", "rise.txt"); code != 0 || out != "" {
		t.Errorf("diff of the same: %d %s", code, out)
	}
	if code, out, _ := run(t, strings.Replace(rise, "=-10", "=-11", 1), "diff", "rise.mtn", "-"); code != 1 || !strings.Contains(out, "keyframe 0, HEAD_PITCH") {
		t.Errorf("diff: %d %s", code, out)
	}
	if code, _, _ := run(t, strings.Replace(rise, "=-10", "=-11", 1), "diff", "rise.mtn", "-", "-tolerance", "1.01"); code != 0 {
		t.Errorf("diff with tolerance: %d", code)
	}
}

// TestInfo: what a motion is, as table and JSON, and every command's help.
func TestInfo(t *testing.T) {
	desk(t)
	_, out, _ := run(t, "", "info", "rise.mtn", "-o", "json")
	var d described
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Model != "ers-210" || d.Part != "a" || d.Start != "sleep" || d.Stop != "sit" || d.Description != "rise" || d.Keyframes != 2 || d.MS != 640 || d.Joints[18] != "TAIL_HORZ" {
		t.Errorf("%+v", d)
	}
	if _, out, _ = run(t, "", "info", "rise.mtn"); !strings.Contains(out, "DURATION     640ms\n") {
		t.Error(out)
	}
	for _, bad := range cli.Lint(MTN()) {
		t.Error(bad)
	}
	for _, m := range aibo.Models {
		p, _ := mtn.PlatformFor(int(m))
		for _, word := range []string{m.String(), strings.ToUpper(m.String()), fmt.Sprint(int(m)), fmt.Sprint("ers", int(m)), p.Format} {
			if got, err := modelNamed("to", word); got != m || err != nil {
				t.Errorf("%s: %v, %v", word, got, err)
			}
		}
	}
}

// TestLibraryCommand: the list names every motion and model, and what is written is good even in strict eyes.
func TestLibraryCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	_, out, _ := run(t, "", "library", "-o", "json")
	var all []owned
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(motions.Library()) || len(all[0].MS) != len(aibo.Models) {
		t.Fatalf("%v %s", err, out)
	}
	if _, out, _ = run(t, "", "library"); !strings.Contains(out, "give_paw") || !strings.Contains(out, "ERS-310") {
		t.Error(out)
	}
	if code, _, errOut := run(t, "", "library", "ers110", "bow", "bow.mtn"); code != 0 {
		t.Fatal(errOut)
	}
	if code, out, _ := run(t, "", "check", "-strict", "bow.mtn"); code != 0 {
		t.Error(out)
	}
	for args, want := range map[string]int{"library ers-7 fly x.mtn": 3, "library ers-8 bow x.mtn": 2, "library ers-7": 2} {
		if code, _, errOut := run(t, "", strings.Fields(args)...); code != want {
			t.Errorf("%s: exit %d, want %d: %s", args, code, want, errOut)
		}
	}
}
