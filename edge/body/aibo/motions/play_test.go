package motions

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// made returns a random motion of a model.
func made(rnd *rand.Rand, m aibo.Model, keyframes int) *mtn.File {
	f := mtn.New(platform(m), "a_stand#stand_made")
	for i := range keyframes {
		k := mtn.Keyframe{Joints: make([]int32, len(f.Joints))}
		if i > 0 {
			k.Interp = rnd.Uint32N(40)
		}
		for c := range k.Joints {
			k.Joints[c] = int32(rnd.IntN(5_000_000) - 2_500_000)
		}
		f.Keyframes = append(f.Keyframes, k)
	}
	return f
}

// vendor computes the rows of a motion as the vendor's player was seen to: v0 + f·trunc((v1-v0)/(2n+2)), one joint after the other and in other arithmetic
// than the player's.
func vendor(f *mtn.File) (rows [][]int32) {
	for i := 1; i < len(f.Keyframes); i++ {
		n := 2*int(f.Keyframes[i].Interp) + 2
		for step := range n {
			row := make([]int32, len(f.Joints))
			for c := range row {
				v0, v1 := int(f.Keyframes[i-1].Joints[c]), int(f.Keyframes[i].Joints[c])
				each, way := 0, v1-v0
				for sign := range 2 {
					if w := way * (1 - 2*sign); w > 0 {
						each = (1 - 2*sign) * (w / n)
					}
				}
				row[c] = int32(v0 + step*each)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// play returns all rows that a player sends.
func play(t *testing.T, m *anim.Motion, body []anim.Joint, o anim.Options, at []int32) (rows [][]int32) {
	t.Helper()
	p, err := anim.New(m, body, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(at); err != nil {
		t.Fatal(err)
	}
	for range 1_000_000 {
		out := make([]int32, len(body))
		if p.Step(out).Has(anim.Finished) {
			return rows
		}
		rows = append(rows, out)
	}
	t.Fatal("no end")
	return nil
}

// TestVendorRule: for motions of every model each row is the vendor's, sample by sample: as the file has it, and in the angles of the device (MTN-54, MTN-60).
func TestVendorRule(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 3))
	for _, m := range aibo.Models {
		for range 10 {
			f := made(rnd, m, 2+rnd.IntN(12))
			want := vendor(f)
			motion, columns := Columns(f)
			got := play(t, motion, columns, anim.Options{}, f.Keyframes[0].Joints)
			if !slices.EqualFunc(got, want, slices.Equal) {
				t.Fatalf("%v: %d rows, want %d", m, len(got), len(want))
			}
			device, err := Motion(f, m, false)
			if err != nil {
				t.Fatal(err)
			}
			body := Body(m)
			at := make([]int32, len(body))
			for c, name := range device.Joints {
				at[slices.IndexFunc(body, func(j anim.Joint) bool { return j.Name == name })] = device.Keyframes[0].Values[c]
			}
			got = play(t, device, body, anim.Options{}, at)
			for i, row := range got {
				for c, j := range joints(m) {
					if row[c] != want[i][c]*int32(j.Sign) {
						t.Fatalf("%v, row %d, %s: %d, want %d times %d", m, i, j.Native, row[c], j.Sign, want[i][c])
					}
				}
			}
		}
	}
}

// TestExampleRows: the source's example by hand: 80 rows, the last of them one whole step before the end.
func TestExampleRows(t *testing.T) {
	f := mtn.New(platform(aibo.ERS210), "a_sleep#sit_x")
	for _, pose := range []float64{-10, -25} {
		if err := f.Add(640*time.Millisecond, map[string]float64{"HEAD_PITCH": pose}); err != nil {
			t.Fatal(err)
		}
	}
	motion, body := Columns(f)
	rows := play(t, motion, body, anim.Options{}, f.Keyframes[0].Joints)
	if len(rows) != 80 || rows[0][0] != -174532 || rows[1][0] != -177804 || rows[79][0] != -433020 { // (436332-174532)/80 = 3272.5
		t.Errorf("%d rows, %d, %d, %d", len(rows), rows[0][0], rows[1][0], rows[79][0])
	}
}

// TestParts: the letter of the name decides which joints are driven (MTN-55); other joints keep their positions (MTN-56).
func TestParts(t *testing.T) {
	f := made(rand.New(rand.NewPCG(1, 1)), aibo.ERS7, 3)
	for part, want := range map[string]int{"a": 20, "h": 3, "l": 12, "m": 1, "e": 2, "t": 2, "x": 20} {
		f.Name = part + "_sit#sit_x"
		m, err := Motion(f, aibo.ERS7, false)
		if err != nil || len(m.Joints) != want || m.Rows() != int64(len(vendor(f))) {
			t.Errorf("%s: %v, %v, want %d joints", part, m.Joints, err, want)
		}
	}
	f.Name = "t_sit#sit_x"
	m, _ := Motion(f, aibo.ERS7, false)
	at, ok := Posture(aibo.ERS7, "sit")
	if !ok {
		t.Fatal("ERS-7 cannot sit")
	}
	for _, row := range play(t, m, Body(aibo.ERS7), anim.Options{Limits: true}, at) {
		if !slices.Equal(row[:18], at[:18]) {
			t.Fatalf("%v moved more than the tail, from %v", row, at)
		}
	}
}

// TestWrongBody: a motion is refused on another model than its own, unless by the names of joints (MTN-52).
func TestWrongBody(t *testing.T) {
	f := made(rand.New(rand.NewPCG(1, 1)), aibo.ERS210, 3)
	if _, err := Motion(f, aibo.ERS7, false); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	m, err := Motion(f, aibo.ERS7, true)
	if err != nil || len(m.Joints) != 19 || slices.Contains(m.Joints, "robot.body.head.roll") {
		t.Errorf("%v, %v; want all joints but the roll of the head", m, err)
	}
	if m, err = Motion(f, aibo.ERS310, true); err != nil || len(m.Joints) != 14 {
		t.Errorf("%v, %v", m, err)
	}
	f.Format = "DRX-2000"
	if _, err := Motion(f, aibo.ERS7, true); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	// Of an ERS-220, five joints are only in files.
	f = mtn.New(platform(aibo.ERS220), "a_sit#sit_x")
	f.Joints = append(f.Joints, platform(aibo.ERS210).Joints[3].Key)
	f.Keyframes = []mtn.Keyframe{{Joints: make([]int32, 16)}}
	if m, err := Motion(f, aibo.ERS220, false); err != nil || len(m.Joints) != 15 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestStart: a tail that wags sitting makes a standing robot sit first, with every joint and at half of its speed at most (MTN-53).
func TestStart(t *testing.T) {
	for _, m := range aibo.Models {
		f := made(rand.New(rand.NewPCG(1, 1)), m, 2)
		f.Name = "t_sit#sit_wag"
		start, ok := Start(f, m)
		if !ok {
			t.Fatal(m)
		}
		body := Body(m)
		at, _ := Posture(m, "stand")
		sit, _ := Posture(m, "sit")
		rows := play(t, start, body, anim.Options{Rule: anim.Linear}, at)
		if len(rows) < 63 || !slices.Equal(rows[len(rows)-1], sit) {
			t.Errorf("%v: %d rows to %v, want %v", m, len(rows), rows[len(rows)-1], sit)
		}
		for i, row := range rows {
			for c, j := range body {
				if step := float64(row[c]-at[c]) / anim.Row.Seconds(); j.Speed > 0 && math.Abs(step) > float64(j.Speed)/2+125 {
					t.Fatalf("%v, row %d: %s at %v", m, i, j.Name, step)
				}
			}
			at = row
		}
		f.Name = "t_walk#sit_wag"
		if _, ok := Start(f, m); ok {
			t.Errorf("%v: the angles of walk are not known", m)
		}
	}
}
