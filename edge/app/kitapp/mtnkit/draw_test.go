package mtnkit

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/infra/cli"
)

// TestDraw: a motion of each model becomes an SVG with all bones of the model, in which those of the legs move when it sits down; mistakes are told.
func TestDraw(t *testing.T) {
	desk(t)
	for _, m := range aibo.Models {
		if code, _, errOut := run(t, "", "library", m.String(), "sit", "sit.mtn"); code != cli.ExitOK {
			t.Fatal(errOut)
		}
		for _, view := range []string{"side", "front"} {
			code, out, errOut := run(t, "", "draw", "sit.mtn", "sit.svg", "-view", view, "-o", "json")
			var said drawn
			if err := json.Unmarshal([]byte(out), &said); code != cli.ExitOK || err != nil || said.Model != m.String() || said.MS == 0 || said.Bytes != len(read(t, "sit.svg")) {
				t.Fatalf("%v: %d %s %s", m, code, out, errOut)
			}
			var doc struct {
				Lines []struct {
					Ends []struct {
						Values string `xml:"values,attr"`
					} `xml:"animate"`
				} `xml:"line"`
			}
			if err := xml.Unmarshal(read(t, "sit.svg"), &doc); err != nil {
				t.Fatal(err)
			}
			body, err := motions.Describe(m)
			if err != nil {
				t.Fatal(err)
			}
			moving := 0
			for _, l := range doc.Lines {
				for _, e := range l.Ends {
					if v := strings.Split(e.Values, ";"); len(slices.Compact(v)) > 5 {
						moving++
						break
					}
				}
			}
			if len(doc.Lines) != len(body.Bones)+1 || moving < 8 { // with the floor
				t.Errorf("%v, %s: %d lines, of which %d move; want %d", m, view, len(doc.Lines), moving, len(body.Bones)+1)
			}
		}
	}
	if err := os.WriteFile("foreign.txt", []byte(strings.Replace(rise, "DRX-910", "DRX-999", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"draw", "rise.mtn", "x.svg", "-view", "top"}, cli.ExitUsage},
		{[]string{"draw", "none.mtn"}, cli.ExitNotFound},
		{[]string{"draw", "foreign.txt"}, cli.ExitFailed},
		{[]string{"urdf", "ers-9"}, cli.ExitUsage},
		{[]string{"urdf"}, cli.ExitUsage},
	} {
		if code, out, errOut := run(t, "", tc.args...); code != tc.code || errOut == "" {
			t.Errorf("%v: %d %s %s", tc.args, code, out, errOut)
		}
	}
}

// TestURDF: the body of each model as URDF has its drivable joints by their standard names, each with its range and speed.
func TestURDF(t *testing.T) {
	for _, m := range aibo.Models {
		code, out, errOut := run(t, "", "urdf", m.String())
		if code != cli.ExitOK {
			t.Fatal(errOut)
		}
		var doc struct {
			Name   string `xml:"name,attr"`
			Joints []struct {
				Name  string `xml:"name,attr"`
				Type  string `xml:"type,attr"`
				Limit struct {
					Lower    float64 `xml:"lower,attr"`
					Upper    float64 `xml:"upper,attr"`
					Velocity float64 `xml:"velocity,attr"`
				} `xml:"limit"`
			} `xml:"joint"`
		}
		if err := xml.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, j := range doc.Joints {
			have[j.Name] = j.Type == "revolute" && j.Limit.Lower < j.Limit.Upper && j.Limit.Velocity > 1
		}
		for _, j := range aibo.Joints(m) {
			moves := strings.Contains(j.Path, ".leg") || strings.Contains(j.Path, ".tail") || strings.Contains(j.Path, ".neck") || strings.Contains(j.Path, ".head.yaw") || strings.Contains(j.Path, ".head.pitch")
			if moves && !have[j.Path] {
				t.Errorf("%v: no joint %s with a range", m, j.Path)
			}
		}
		if doc.Name != m.String() || len(doc.Joints) < 14 {
			t.Errorf("%s has %d joints", doc.Name, len(doc.Joints))
		}
	}
}
