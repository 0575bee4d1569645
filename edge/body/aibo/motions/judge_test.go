package motions

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
	"kennel/infra/api/motionwire"
)

// file returns the bytes of a motion of the library, after a change.
func file(t *testing.T, m aibo.Model, name string, change func(*mtn.File)) []byte {
	t.Helper()
	f, err := Load(m, name)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	return mtnOf(t, f)
}

func mtnOf(t *testing.T, f *mtn.File) []byte {
	t.Helper()
	b, err := mtn.Append(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// column returns the place of a joint in a file.
func column(f *mtn.File, name string) int {
	p, _ := mtn.PlatformOf(f.Format)
	for i, r := range p.Resolve(f.Joints) {
		if r.Name == name {
			return i
		}
	}
	return -1
}

// TestJudge: each model keeps what its library has, in every form; what it cannot play is refused with the place, what was expected and what was found.
func TestJudge(t *testing.T) {
	t.Parallel()
	as := func(*mtn.File) {}
	for _, m := range aibo.Models {
		for _, name := range Library() {
			b := file(t, m, name, as)
			v := Judge(b, "mine", m)
			if !v.Kept || v.Why != "" || v.Motion == nil || string(v.File) != string(b) {
				t.Fatalf("%v, %s: %+v", m, name, v)
			}
			page, err := json.Marshal(motionwire.Edited{V: 1, Sequence: *v.Motion})
			if err != nil {
				t.Fatal(err)
			}
			again := Judge(page, "mine", m)
			if !again.Kept || again.Motion.SpanMS != v.Motion.SpanMS || again.Motion.Start != v.Motion.Start {
				t.Fatalf("%v, %s of a page: %+v", m, name, again)
			}
			for i, j := range v.Motion.Joints { // the page's motion moves each joint the same way, and those of the same names
				c := -1
				for k, other := range again.Motion.Joints {
					if other == j {
						c = k
					}
				}
				if c < 0 {
					t.Fatalf("%v, %s: the page's motion lost %s", m, name, j)
				}
				for n := range v.Motion.Keyframes {
					if v.Motion.Keyframes[n].Values[i] != again.Motion.Keyframes[n].Values[c] || v.Motion.Keyframes[n].AtMS != again.Motion.Keyframes[n].AtMS {
						t.Fatalf("%v, %s, keyframe %d: %s differs", m, name, n, j)
					}
				}
			}
		}
	}
	bow := file(t, aibo.ERS7, "bow", as)
	huge := file(t, aibo.ERS7, "bow", func(f *mtn.File) { f.Keyframes[1].Interp = math.MaxUint32 })
	lies := append([]byte(nil), bow...)
	binary.LittleEndian.PutUint32(lies[32:], math.MaxUint32) // length of block 1
	for name, tc := range map[string]struct {
		b                    []byte
		code, what, expected string
		offset               bool
	}{
		"another model":  {file(t, aibo.ERS210, "bow", as), CodeModel, "format", "DRX-1000", true},
		"no motion":      {[]byte("GIF89a"), mtn.CodeSignature, "", "", true},
		"empty":          {nil, mtn.CodeSignature, "", "", true},
		"half":           {bow[:len(bow)/3], mtn.CodeBlockLength, "", "", true},
		"a lying length": {lies, mtn.CodeBlockLength, "", "", true},
		"years":          {huge, CodeLong, "duration", "at most 120 s", false},
		"a joint beyond its range": {file(t, aibo.ERS7, "bow", func(f *mtn.File) {
			f.Keyframes[1].Joints[column(f, "HEAD_YAW")] = mtn.MicroRadian(170)
		}), CodeRange, "HEAD_YAW", "-88 to 88 degrees", true},
		"too fast":                              {file(t, aibo.ERS7, "bow", func(f *mtn.File) { f.Keyframes[1].Interp = 0 }), CodeSpeed, "row", "at most", true},
		"it falls":                              {mtnOf(t, written(t, "a_stand#stand_fall", back)), CodeTip, "balance", "the weight above the paws", true},
		"text with a fault":                     {[]byte("mtn\nformat DRX-1000\nname a_stand#stand_x\njoints all\npose 0 HEAD_TILT=3\n"), CodeForm, "line 5", "", false},
		"a page's motion without a joint of it": {[]byte(`{"v":1,"name":"x","joints":["robot.body.wing"],"keyframes":[{"at_ms":0,"values":[1]}]}`), CodeNone, "joints", "some of ers-7", false},
		"a page's motion that runs backwards":   {[]byte(`{"v":1,"name":"x","joints":[],"keyframes":[{"at_ms":0,"values":[]},{"at_ms":0,"values":[]}]}`), CodeForm, "keyframe 1", "", false},
		"no keyframe":                           {[]byte(`{"v":1,"name":"x","joints":["robot.body.head.yaw"],"keyframes":[]}`), mtn.CodeEmpty, "keyframes", "at least 1", false},
	} {
		begun := time.Now()
		v := Judge(tc.b, "mine", aibo.ERS7)
		if v.Kept || v.Why == "" || len(v.Findings) == 0 {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		f := v.Findings[0]
		if f.Code != tc.code || f.Severity != "error" || !strings.Contains(f.What, tc.what) || !strings.Contains(f.Expected, tc.expected) || (f.Offset >= 0) != tc.offset {
			t.Errorf("%s: %+v", name, f)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		v.SHA256 = motionwire.Sum(tc.b)
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
		if _, err := motionwire.ParseVerdict(b); err != nil {
			t.Errorf("%s: the cloud would not take its verdict: %v", name, err)
		}
	}
}

// TestDescribe: the cloud takes the description of each model, and the chain of its links leads where the statics have knees, paws and nose.
func TestDescribe(t *testing.T) {
	for _, m := range aibo.Models {
		d, err := Describe(m)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := motionwire.ParseBody(b); err != nil || len(d.Motions) != len(Library()) || len(d.Joints) != len(Body(m)) || len(b) > 32<<10 {
			t.Errorf("%v: %d bytes, %d motions, %d joints, %v", m, len(b), len(d.Motions), len(d.Joints), err)
		}
		body, angles := statics.New(m), map[string]float64{}
		var in []float64
		for i, j := range aibo.Joints(m) {
			a := 0.3*math.Sin(float64(3*i+1)) + 0.1
			in, angles[j.Path] = append(in, a), a
		}
		f := body.Pose(in)
		want := map[string]statics.Vec{"nose": f.At[16]}
		for l, leg := range statics.LegNames {
			want["paw "+leg] = f.At[statics.Paw+l]
		}
		for what, at := range want {
			found := false
			for _, bone := range d.Bones {
				p := bone.To
				for l := bone.Link; l >= 0; l = d.Links[l].Parent {
					p = turned(p, d.Links[l].Axis, angles[d.Links[l].Joint])
					for i := range p {
						p[i] += d.Links[l].At[i]
					}
				}
				if math.Hypot(math.Hypot(p[0]-at[0], p[1]-at[1]), p[2]-at[2]) < 1e-9 {
					found = true
				}
			}
			if !found {
				t.Errorf("%v: no bone ends at its %s, %v", m, what, at)
			}
		}
	}
}

// turned turns p about an axis of the frame (Rodrigues).
func turned(p, k [3]float64, by float64) (out [3]float64) {
	sin, cos := math.Sincos(by)
	cross := [3]float64{k[1]*p[2] - k[2]*p[1], k[2]*p[0] - k[0]*p[2], k[0]*p[1] - k[1]*p[0]}
	dot := k[0]*p[0] + k[1]*p[1] + k[2]*p[2]
	for i := range p {
		out[i] = p[i]*cos + cross[i]*sin + k[i]*dot*(1-cos)
	}
	return out
}

// FuzzJudge: no upload makes the judge panic or keep what the cloud would not take.
func FuzzJudge(f *testing.F) {
	for _, m := range []aibo.Model{aibo.ERS110, aibo.ERS7} {
		x, err := Load(m, "bow")
		if err != nil {
			f.Fatal(err)
		}
		b, err := mtn.Append(nil, x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(mtn.AppendText(nil, x))
	}
	f.Add([]byte(`{"v":1,"name":"x","joints":["robot.body.head.yaw"],"keyframes":[{"at_ms":0,"values":[1]},{"at_ms":400,"values":[90000]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := Judge(b, "mine", aibo.ERS7)
		v.SHA256 = motionwire.Sum(b)
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := motionwire.ParseVerdict(out); err != nil && v.Kept {
			t.Errorf("it is kept, and the cloud says: %v", err)
		}
		if v.Kept && len(v.Findings) > 0 && v.Findings[0].Severity == "error" {
			t.Errorf("kept with %+v", v.Findings[0])
		}
	})
}
