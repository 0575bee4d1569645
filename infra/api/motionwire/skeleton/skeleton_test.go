package skeleton

import (
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"kennel/infra/api/motionwire"
)

// arm is a body with two joints in a row: a shoulder that turns about Y, 0.1 m above the trunk, and 0.2 m below it an elbow that turns about Z, with a hand of
// 0.1 m to the front. A fixed link carries a horn.
func arm() *motionwire.Body {
	return &motionwire.Body{V: 1, Model: `a<r>"m`, Ending: "arm",
		Joints: []motionwire.Joint{{Name: "shoulder", Min: -1_500_000, Max: 500_000, Speed: 2_000_000}, {Name: "elbow"}},
		Links: []motionwire.Link{{Joint: "shoulder", Parent: -1, At: Vec{0, 0, 0.1}, Axis: Vec{0, 1, 0}}, {Joint: "elbow", Parent: 0, At: Vec{0, 0, -0.2}, Axis: Vec{0, 0, 1}},
			{Parent: -1, At: Vec{0.05, 0, 0.1}}},
		Bones: []motionwire.Bone{{Link: -1, From: Vec{-0.1, 0, 0}, To: Vec{0.1, 0, 0}, Wide: 0.08}, {Link: 0, To: Vec{0, 0, -0.2}, Wide: 0.02}, {Link: 1, To: Vec{0.1, 0, 0}, Wide: 0.02}, {Link: 2, To: Vec{0, 0, 0.05}, Wide: 0.01}}}
}

func near(a, b Vec, within float64) bool {
	return math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2]) <= within
}

// TestPose: where the hand is, worked out by hand.
func TestPose(t *testing.T) {
	for _, tt := range []struct {
		angles map[string]float64
		hand   Vec
	}{
		{nil, Vec{0.1, 0, -0.1}},
		{map[string]float64{"elbow": math.Pi / 2}, Vec{0, 0.1, -0.1}},                            // to the left
		{map[string]float64{"shoulder": -math.Pi / 2}, Vec{0.2, 0, 0.2}},                         // the arm to the front, the hand upward
		{map[string]float64{"shoulder": -math.Pi / 2, "elbow": math.Pi / 2}, Vec{0.2, 0.1, 0.1}}, // the arm to the front, the hand to the left
	} {
		if got := Pose(arm(), tt.angles)[2].To; !near(got, tt.hand, 1e-9) {
			t.Errorf("%v: the hand is at %v, want %v", tt.angles, got, tt.hand)
		}
	}
}

// TestAngles: a joint moves evenly between keyframes, and is at the first before and at the last after them; others keep their angle.
func TestAngles(t *testing.T) {
	m := &motionwire.Sequence{Joints: []string{"elbow"}, Keyframes: []motionwire.Keyframe{{Values: []int32{-100_000}}, {AtMS: 400, Values: []int32{300_000}}, {AtMS: 500, Values: []int32{300_000}}}}
	for ms, want := range map[float64]float64{-5: -0.1, 0: -0.1, 100: 0, 400: 0.3, 450: 0.3, 9000: 0.3} {
		if got := Angles(m, ms, map[string]float64{"shoulder": 7, "elbow": 8}); math.Abs(got["elbow"]-want) > 1e-12 || got["shoulder"] != 7 {
			t.Errorf("%v ms: %v, want %v", ms, got, want)
		}
	}
	if got := Angles(&motionwire.Sequence{Joints: []string{"elbow"}}, 5, nil); len(got) != 0 {
		t.Errorf("without keyframes: %v", got)
	}
}

// TestRest: a body on a stilt in front leans back until its rear end touches the floor too.
func TestRest(t *testing.T) {
	stilt := []Segment{{Vec{-0.3, 0, 0.2}, Vec{0.1, 0, 0.2}, 0}, {Vec{0.1, 0, 0.2}, Vec{0.1, 0, 0}, 0}}
	got := Rest(stilt)
	if rear, foot := got[0].From, got[1].To; math.Abs(rear[2]) > 1e-9 || math.Abs(foot[2]) > 1e-9 || math.Abs(foot[0]-rear[0]-math.Hypot(0.4, 0.2)) > 1e-9 {
		t.Errorf("its rear end is at %v, its foot at %v", rear, foot)
	}
	if stilt[0].From[2] != 0.2 {
		t.Error("its argument changed")
	}
	level := Rest([]Segment{{Vec{-0.1, 0, 0.3}, Vec{0.1, 0, 0.3}, 0.1}})
	if math.Abs(level[0].From[2]-0.05) > 1e-9 || math.Abs(level[0].To[2]-0.05) > 1e-9 {
		t.Errorf("a level trunk rests at %v", level)
	}
	if len(Rest(nil)) != 0 {
		t.Error("bones of nothing")
	}
}

// TestSVG: a well-formed document with a line for each bone whose ends move as the motion says, in at most 200 pictures, however long it is.
func TestSVG(t *testing.T) {
	type animate struct {
		Name   string `xml:"attributeName,attr"`
		Dur    string `xml:"dur,attr"`
		Values string `xml:"values,attr"`
	}
	var doc struct {
		Title string `xml:"title"`
		Lines []struct {
			Wide string    `xml:"stroke-width,attr"`
			X2   float64   `xml:"x2,attr"`
			Ends []animate `xml:"animate"`
		} `xml:"line"`
	}
	for ms, pictures := range map[int64]int{400: 11, 5: 3, 100_000: 201} {
		m := &motionwire.Sequence{Name: "wave <hi>", Joints: []string{"elbow"}, Keyframes: []motionwire.Keyframe{{Values: []int32{0}}, {AtMS: ms, Values: []int32{1_570_796}}}}
		doc.Lines = nil
		if err := xml.Unmarshal(AppendSVG(nil, arm(), m, nil, Side), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Title != "wave <hi>" || len(doc.Lines) != 5 { // and the floor
			t.Fatalf("%+v", doc)
		}
		hand := doc.Lines[len(doc.Lines)-1]
		for _, l := range doc.Lines[1:] {
			if l.X2 > 99.9 && l.Wide == "20.0" {
				hand = l
			}
		}
		if len(hand.Ends) != 4 || hand.Ends[2].Name != "x2" || hand.Ends[2].Dur != fmt.Sprint(ms, "ms") {
			t.Fatalf("%d ms: %+v", ms, hand)
		}
		values := strings.Split(hand.Ends[2].Values, ";")
		first, _ := strconv.ParseFloat(values[0], 64)
		last, err := strconv.ParseFloat(values[len(values)-1], 64)
		if len(values) != pictures || math.Abs(first-100) > 0.06 || math.Abs(last) > 0.06 || err != nil { // from the front to the left
			t.Errorf("%d ms: %d pictures from %v to %v, %v", ms, len(values), first, last, err)
		}
	}
	front := string(AppendSVG(nil, arm(), &motionwire.Sequence{Joints: []string{"elbow"}, Keyframes: []motionwire.Keyframe{{Values: []int32{1_570_796}}}}, nil, Front))
	if !strings.Contains(front, `x2="100.0"`) {
		t.Errorf("from the front the hand is not at the robot's left: %s", front)
	}
}

// robot is a URDF document.
type robot struct {
	Name  string `xml:"name,attr"`
	Links []struct {
		Name    string `xml:"name,attr"`
		Visuals []struct {
			Origin   origin `xml:"origin"`
			Cylinder struct {
				Radius float64 `xml:"radius,attr"`
				Length float64 `xml:"length,attr"`
			} `xml:"geometry>cylinder"`
		} `xml:"visual"`
	} `xml:"link"`
	Joints []struct {
		Name   string `xml:"name,attr"`
		Type   string `xml:"type,attr"`
		Parent struct {
			Link string `xml:"link,attr"`
		} `xml:"parent"`
		Child struct {
			Link string `xml:"link,attr"`
		} `xml:"child"`
		Origin origin `xml:"origin"`
		Axis   *struct {
			XYZ string `xml:"xyz,attr"`
		} `xml:"axis"`
		Limit *struct {
			Lower    float64 `xml:"lower,attr"`
			Upper    float64 `xml:"upper,attr"`
			Effort   float64 `xml:"effort,attr"`
			Velocity float64 `xml:"velocity,attr"`
		} `xml:"limit"`
	} `xml:"joint"`
}

type origin struct {
	XYZ string `xml:"xyz,attr"`
	RPY string `xml:"rpy,attr"`
}

func vec(t *testing.T, s string) (v Vec) {
	t.Helper()
	if _, err := fmt.Sscan(s, &v[0], &v[1], &v[2]); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return v
}

// TestURDF: read as URDF is meant (a joint turns its child about its axis in the place of its origin, a cylinder lies along its own Z), the document has the bones
// where Pose has them, for random angles.
func TestURDF(t *testing.T) {
	b := arm()
	var doc robot
	if err := xml.Unmarshal(AppendURDF(nil, b), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Name != b.Model || len(doc.Links) != 4 || len(doc.Joints) != 3 {
		t.Fatalf("%+v", doc)
	}
	for i, want := range []string{"revolute", "continuous", "fixed"} {
		j := doc.Joints[i]
		if j.Type != want || (j.Limit != nil) != (want == "revolute") || (j.Axis != nil) != (want != "fixed") {
			t.Errorf("joint %s: %+v, want it %s", j.Name, j, want)
		}
	}
	if l := doc.Joints[0].Limit; l.Lower != -1.5 || l.Upper != 0.5 || l.Velocity != 2 || l.Effort <= 0 {
		t.Errorf("limits %+v", l)
	}
	rnd := rand.New(rand.NewPCG(35, 63))
	for range 20 {
		angles := map[string]float64{"shoulder": rnd.Float64()*3 - 1.5, "elbow": rnd.Float64()*6 - 3}
		var got []Segment
		for _, l := range doc.Links {
			for _, v := range l.Visuals {
				middle, rpy, half := vec(t, v.Origin.XYZ), vec(t, v.Origin.RPY), v.Cylinder.Length/2
				var ends [2]Vec
				for i, z := range []float64{-half, half} {
					p := turned(turned(turned(Vec{0, 0, z}, Vec{1, 0, 0}, rpy[0]), Vec{0, 1, 0}, rpy[1]), Vec{0, 0, 1}, rpy[2])
					for k := range p {
						p[k] += middle[k]
					}
					ends[i] = doc.place(t, p, l.Name, angles)
				}
				got = append(got, Segment{ends[0], ends[1], v.Cylinder.Radius * 2})
			}
		}
		for i, want := range Pose(b, angles) {
			if !near(got[i].From, want.From, 1e-4) || !near(got[i].To, want.To, 1e-4) || math.Abs(got[i].Wide-want.Wide) > 1e-5 {
				t.Errorf("%v: bone %d is %v, want %v", angles, i, got[i], want)
			}
		}
	}
}

// place returns a point of a link in the frame of the trunk.
func (r *robot) place(t *testing.T, p Vec, link string, angles map[string]float64) Vec {
	t.Helper()
	for link != "trunk" {
		for _, j := range r.Joints {
			if j.Child.Link != link {
				continue
			}
			if j.Axis != nil {
				p = turned(p, vec(t, j.Axis.XYZ), angles[j.Name])
			}
			at := vec(t, j.Origin.XYZ)
			for k := range p {
				p[k] += at[k]
			}
			link = j.Parent.Link
			break
		}
	}
	return p
}
