package motions

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// codes returns the codes of findings.
func codes(found []mtn.Finding) (out []string) {
	for _, f := range found {
		out = append(out, f.Code)
	}
	return out
}

// rise is a motion without a fault: the source's example.
const rise = `mtn
format DRX-910
name a_sleep#sit_Sleep_To_Sit
joints all
pose 0 HEAD_PITCH=-10 MOUTH=-3 FL_LEG_VERT=60 FL_LEG_KNEE=30 FR_LEG_VERT=60 FR_LEG_KNEE=30 BL_LEG_VERT=-115 BL_LEG_KNEE=145 BR_LEG_VERT=-115 BR_LEG_KNEE=145
pose 640ms HEAD_PITCH=-25 FL_LEG_VERT=0 FL_LEG_KNEE=10 FR_LEG_VERT=0 FR_LEG_KNEE=10 BL_LEG_VERT=-90 BL_LEG_KNEE=135 BR_LEG_VERT=-90 BR_LEG_KNEE=135
`

// TestCheck: each rule has its code, and the good motion none (MTN-17, MTN-18, MTN-26, MTN-28, MTN-51).
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(f *mtn.File)
		want []string
	}{
		{"good", func(*mtn.File) {}, nil},
		{"unknown letter", func(f *mtn.File) { f.Name = "x_sleep#sit_x" }, []string{CodePart}},
		{"no grammar", func(f *mtn.File) { f.Name = "stdgh001" }, []string{CodePart}},
		{"odd description", func(f *mtn.File) { f.Name = "a_sleep#sit_to sit" }, []string{CodeName}},
		{"unknown posture", func(f *mtn.File) { f.Name = "a_fly#sit_x" }, []string{CodePosture}},
		{"posture of another model", func(f *mtn.File) { f.Name = "a_sleep#situp_x" }, []string{CodePosture}},
		{"unknown format", func(f *mtn.File) { f.Format = "DRX-2000" }, []string{CodeFormat}},
		{"another start", func(f *mtn.File) { f.Name = "a_stand#sit_x" }, []string{CodeStart}},
		{"another stop", func(f *mtn.File) { f.Name = "a_sleep#stand_x" }, []string{CodeStop}},
		{"start by 5 degrees", func(f *mtn.File) { f.Keyframes[0].Joints[0] += mtn.MicroRadian(5) }, nil},
		{"start by 6 degrees", func(f *mtn.File) { f.Keyframes[0].Joints[0] += mtn.MicroRadian(6) }, []string{CodeStart}},
		{"head that moves legs", func(f *mtn.File) { f.Name = "h_sleep#sit_x" },
			slices.Repeat([]string{CodeOutside}, 17)},
		{"wrong key", func(f *mtn.File) { f.Joints[3] = "PRM:/r1/c1/c2/c3/c4-Joint2" }, []string{CodePlace}},
		{"doubled key", func(f *mtn.File) { f.Joints[3] = f.Joints[2] }, []string{CodePlace}},
		{"unknown key", func(f *mtn.File) { f.Joints = append(f.Joints, "PRM:/r9"); more(f) }, []string{CodeJoint}},
		{"mouth beyond its range", func(f *mtn.File) { f.Keyframes[1].Joints[3] = mtn.MicroRadian(-48) }, []string{CodeRange}},
		{"mouth at its end", func(f *mtn.File) { f.Keyframes[1].Joints[3] = mtn.MicroRadian(-47) }, nil},
		{"too fast", func(f *mtn.File) { f.Keyframes[1].Interp = 22 }, []string{CodeSpeed, CodeSpeed}}, // 60 degrees in 368 ms, by two legs
		{"as fast as it can", func(f *mtn.File) { f.Keyframes[1].Interp = 23 }, nil},                   // 2.73 of 2.81 rad/s
	} {
		f := built(t, rise)
		tc.edit(f)
		if got := codes(Check(f)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, Check(f), tc.want)
		}
		for _, x := range Check(f) {
			if x.Severity != mtn.Warning || x.Expected == "" || x.Found == "" || x.What == "" || x.Offset <= 0 || x.Block < 1 || x.Block > 3 {
				t.Errorf("%s: %+v", tc.name, x)
			}
		}
	}
	// Names that ERS-220 shares with ERS-210 and does not have are no mistake (MTN-26).
	f := built(t, rise)
	f.Format = "DRX-900"
	f.Name = "a_fly_x"
	if got := Check(f); len(got) != 1+5 || got[1].Code != CodeLacking || got[1].Severity != mtn.Note {
		t.Errorf("%v", got)
	}
}

// more gives each keyframe an angle more.
func more(f *mtn.File) {
	for i := range f.Keyframes {
		f.Keyframes[i].Joints = append(f.Keyframes[i].Joints, 0)
	}
}

// TestCheckPlace: a finding names the 8 ms row, and the offset of the very angle.
func TestCheckPlace(t *testing.T) {
	f := built(t, rise)
	f.Keyframes = append(f.Keyframes, mtn.Keyframe{Interp: 0, Joints: slices.Clone(f.Keyframes[1].Joints)})
	f.Keyframes[2].Joints[1] = mtn.MicroRadian(95)
	found := Check(f)
	if !slices.Equal(codes(found), []string{CodeRange, CodeSpeed, CodeStop}) {
		t.Fatal(found)
	}
	b := encoded(t, f)
	for i, row := range []string{"row 82, keyframe 2: HEAD_YAW", "row 80, way to keyframe 2: speed of HEAD_YAW"} {
		if v := int32(binary.LittleEndian.Uint32(b[found[i].Offset:])); v != mtn.MicroRadian(95) || !strings.HasPrefix(found[i].What, row) {
			t.Errorf("%+v: %d there, want %s", found[i], v, row)
		}
	}
}

// TestPosturesCheck: on every model a motion between any two of its postures in two seconds has no fault.
func TestPosturesCheck(t *testing.T) {
	words := []string{"sleep", "sit", "stand"}
	for _, m := range aibo.Models {
		for _, from := range words {
			for _, to := range words {
				f := mtn.New(platform(m), fmt.Sprintf("a_%s#%s_move", from, to))
				for i, word := range []string{from, to} {
					p, _ := aibo.Posture(m, word)
					all := map[string]float64{}
					for _, j := range aibo.Joints(m) {
						all[j.Native] = p[j.Native]
					}
					if err := f.Add(mtn.Frame*125, all); err != nil || i > 1 {
						t.Fatal(err)
					}
				}
				if found := Check(f); len(found) != 0 {
					t.Errorf("%v, %s to %s: %v", m, from, to, found)
				}
			}
		}
	}
}

// FuzzEdit: whatever a file holds, checks and edits neither panic nor make what cannot be written.
func FuzzEdit(f *testing.F) {
	good, err := mtn.Build([]byte(rise))
	if err != nil {
		f.Fatal(err)
	}
	b, err := mtn.Append(nil, good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 1.5, 0.5, uint8(4))
	f.Fuzz(func(t *testing.T, b []byte, time, angle float64, to uint8) {
		file, _, err := mtn.Parse(b, mtn.Lenient)
		if err != nil {
			return
		}
		Check(file)
		Diff(file, Reverse(file), 1, 10)
		results := []*mtn.File{Reverse(file)}
		for _, edit := range []func() (*mtn.File, error){
			func() (*mtn.File, error) { return Mirror(file) },
			func() (*mtn.File, error) { return Scale(file, time, angle) },
			func() (*mtn.File, error) { return Blend(file, file, angle) },
			func() (*mtn.File, error) { out, _, err := Limit(file); return out, err },
			func() (*mtn.File, error) {
				out, _, err := Retarget(file, aibo.Models[int(to)%len(aibo.Models)])
				return out, err
			},
		} {
			if out, err := edit(); err == nil {
				results = append(results, out)
			}
		}
		for i, out := range results {
			if _, err := mtn.Append(nil, out); err != nil && out.Minor > 1 && file.Minor > 1 {
				t.Errorf("edit %d: %v", i, err)
			}
		}
	})
}
