package mtn

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestExample: each fact of the source's example (section 10 of the rows), and the same 784 bytes again (MTN-49).
func TestExample(t *testing.T) {
	b := example(t)
	f, found, err := Parse(b, Strict)
	if err != nil || len(found) != 0 {
		t.Fatal(err, found)
	}
	type head struct {
		major, minor, rate uint16
		options, dataType  uint32
		name, author, form string
		joints, frames     int
		last               time.Duration
	}
	got := head{f.Major, f.Minor, f.Rate, f.Options, f.DataType, f.Name, f.Author, f.Format, len(f.Joints), len(f.Keyframes), f.Duration()}
	want := head{1, 2, 16, 0, 0, "a_sleep#sit_Sleep_To_Sit", "Skitter", "DRX-910", 20, 2, 640 * time.Millisecond}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !f.Layout.IsZero() {
		t.Errorf("layout %+v; the example is laid out as the writer does", f.Layout)
	}
	if k := f.Keyframes[1]; k.Interp != 39 || k.RPY != [3]int32{} {
		t.Errorf("keyframe 1: %+v", k)
	}
	// Degrees of both keyframes, by symbolic name; what is not named is 0. Each angle was truncated (MTN-34).
	degrees := map[string][2]float64{
		"HEAD_PITCH": {-10, -25}, "MOUTH": {-3, -3}, "FL_LEG_VERT": {60, 0}, "FL_LEG_KNEE": {30, 10}, "FR_LEG_VERT": {60, 0}, "FR_LEG_KNEE": {30, 10},
		"BL_LEG_VERT": {-115, -90}, "BL_LEG_KNEE": {145, 135}, "BR_LEG_VERT": {-115, -90}, "BR_LEG_KNEE": {145, 135},
	}
	p, _ := PlatformOf(f.Format)
	for i, r := range p.Resolve(f.Joints) {
		if r.Match != ByKey {
			t.Errorf("joint %d: %+v", i, r)
		}
		for k := range 2 {
			if got, want := f.Keyframes[k].Joints[i], MicroRadian(degrees[r.Name][k]); got != want {
				t.Errorf("keyframe %d, %s: %d, want %d", k, r.Name, got, want)
			}
		}
	}
	for i, want := range []int32{-174532, 0, 0, -52359, 0, 0, 1047197, 0, 523598, -2007128, 0, 2530727} {
		if f.Keyframes[0].Joints[i] != want {
			t.Errorf("keyframe 0, joint %d: %d, want %d", i, f.Keyframes[0].Joints[i], want)
		}
	}
	// Offsets of the source: where a changed byte shows.
	for at, see := range map[int]func(*File) bool{
		0x25:  func(f *File) bool { return f.Name[0] != 'a' },
		0x3E:  func(f *File) bool { return f.Author[0] != 'S' },
		0x46:  func(f *File) bool { return f.Format[0] != 'D' },
		0x5B:  func(f *File) bool { return f.Joints[0][0] != 'P' },
		0x246: func(f *File) bool { return f.Layout.Pad[2] != nil },
		0x250: func(f *File) bool { return f.DataType != 0 },
		0x254: func(f *File) bool { return f.Keyframes[0].RPY[0] != 0 },
		0x260: func(f *File) bool { return f.Keyframes[0].Joints[0] != -174532 },
		0x2B0: func(f *File) bool { return f.Keyframes[1].Interp != 39 },
		0x30C: func(f *File) bool { return f.Keyframes[1].Joints[19] != 0 },
	} {
		c := bytes.Clone(b)
		c[at] ^= 0x11
		if f, _, err := Parse(c, Lenient); err != nil || !see(f) {
			t.Errorf("a change at %#x: %v, not seen", at, err)
		}
	}
	if again := must(t, f); !bytes.Equal(again, b) {
		t.Errorf("written again: %x", again)
	}
}

// TestJoints: the keys of each model are the source's, in its order; only ERS-220 lacks five of those that it shares with ERS-210.
func TestJoints(t *testing.T) {
	file, err := os.Open("testdata/joints.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows := map[string][]Joint{}
	model := ""
	for s := bufio.NewScanner(file); s.Scan(); {
		word, rest, pair := strings.Cut(s.Text(), " ")
		switch {
		case strings.HasPrefix(s.Text(), "#"):
		case strings.HasSuffix(word, ":"):
			model = strings.TrimSuffix(word, ":")
		case pair:
			rows[model] = append(rows[model], Joint{word, strings.Trim(rest, `" `)})
		}
	}
	rows["ERS-210"], rows["ERS-220"] = rows["ERS-210/220"], rows["ERS-210/220"]
	formats := map[int]string{110: "DRX-700", 210: "DRX-910", 220: "DRX-900", 310: "DRX-801", 7: "DRX-1000"} // MTN-22
	counts := map[int]int{110: 18, 210: 20, 220: 15, 310: 15, 7: 20}
	for _, p := range Platforms() {
		var keys []string
		want := rows[fmt.Sprint("ERS-", p.ERS)]
		for _, j := range want {
			keys = append(keys, j.Key)
		}
		n, lacking := 0, 0
		for i, r := range p.Resolve(keys) {
			if r.Name != want[i].Name {
				t.Errorf("%s: %s is %q, want %q", p.Format, keys[i], r.Name, want[i].Name)
			}
			if r.Match == Lacking {
				lacking++
			} else if p.Joints[n] != want[i] {
				t.Errorf("%s, place %d: %v, want %v", p.Format, n, p.Joints[n], want[i])
			} else {
				n++
			}
		}
		if p.Format != formats[p.ERS] || n != counts[p.ERS] || n+lacking != len(want) || len(want) == 0 {
			t.Errorf("%s: %d joints and %d lacking of %d", p.Format, n, lacking, len(want))
		}
	}
}

// TestResolve: wrong and doubled names in a whole list are known by their places, as real files have them; in another list they are not.
func TestResolve(t *testing.T) {
	p, ok := PlatformOf("DRX-700_Legs")
	if !ok || p.ERS != 110 {
		t.Fatal(p, ok)
	}
	var keys []string
	for _, j := range p.Joints {
		keys = append(keys, j.Key)
	}
	keys[9], keys[14], keys[17] = "PRM:/r3/c0/c1/c2-Joint", "PRM:/r5/c0/c2-Joint:j1", keys[16]
	for i, r := range p.Resolve(keys) {
		want := ByKey
		if i == 9 || i == 14 || i == 17 {
			want = ByPlace
		}
		if r.Name != p.Joints[i].Name || r.Match != want {
			t.Errorf("joint %d: %+v, want %s by %d", i, r, p.Joints[i].Name, want)
		}
	}
	if r := p.Resolve(keys[9:]); r[0].Match != Unknown || r[5].Match != Unknown || r[7] != (Resolved{"TAIL_VERT", ByKey}) || r[8].Match != Unknown {
		t.Errorf("%+v", r)
	}
	if r := p.Resolve([]string{"FL_LEG_LAT"}); r[0] != (Resolved{"FL_LEG_LAT", ByName}) {
		t.Errorf("%+v", r)
	}
}

// TestName: the grammar of chunk names (MTN-17 to 20), and names of real files that break it.
func TestName(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Name
	}{
		{"a_sleep#sit_Sleep_To_Sit", Name{'a', "sleep", "sit", "Sleep_To_Sit", true}},
		{"h_sit#sit_nod", Name{'h', "sit", "sit", "nod", true}},
		{"x_sit#sit_nod", Name{0, "sit", "sit", "nod", false}},
		{"cd#1", Name{0, "cd", "1", "", false}},
		{"sit#sit_kiss.kfm", Name{0, "sit", "sit", "kiss.kfm", false}},
		{"stdgh001", Name{0, "", "", "stdgh001", false}},
		{"t_sit#sit_wag it", Name{'t', "sit", "sit", "wag it", false}},
		{"", Name{}},
	} {
		if got := ParseName(tc.in); got != tc.want {
			t.Errorf("%q: %+v, want %+v", tc.in, got, tc.want)
		}
		if tc.want.Fits && tc.want.String() != tc.in {
			t.Errorf("%q: %q", tc.in, tc.want.String())
		}
	}
	// Each part drives its own joints (MTN-55).
	for part, want := range map[byte]string{'a': "hmlet", 'h': "h", 'l': "l", 'm': "m", 'e': "e", 't': "t", 0: "hmlet"} {
		got := ""
		for _, j := range []string{"HEAD_PITCH2", "MOUTH", "BR_LEG_KNEE", "LEFT_EAR", "TAIL_HORZ"} {
			if (Name{Part: part}).Drives(j) {
				got += string(rune(PartOf(j)))
			}
		}
		if got != want {
			t.Errorf("part %q drives %q, want %q", part, got, want)
		}
	}
}

// TestDegrees: truncation toward zero, and what does not fit (MTN-34).
func TestDegrees(t *testing.T) {
	for degrees, want := range map[float64]int32{-10: -174532, 60: 1047197, 30: 523598, 0: 0, -115: -2007128, 1e9: math.MaxInt32, -1e9: math.MinInt32} {
		if got := MicroRadian(degrees); got != want {
			t.Errorf("%v degrees: %d, want %d", degrees, got, want)
		}
	}
	if MicroRadian(math.NaN()) != 0 {
		t.Error("NaN")
	}
	if got := strconv.FormatFloat(Degrees(-174532), 'f', 6, 64); got != "-9.999947" {
		t.Errorf("-174532: %s degrees", got)
	}
}

// TestDuration: interp+1 frames each, but for the first keyframe; interp 0 is one frame (MTN-35, MTN-36).
func TestDuration(t *testing.T) {
	for _, tc := range []struct {
		interp []uint32
		want   time.Duration
	}{{nil, 0}, {[]uint32{0}, 0}, {[]uint32{0, 0}, 16 * time.Millisecond}, {[]uint32{0, 39, 0, 4}, (40 + 1 + 5) * 16 * time.Millisecond}} {
		f := &File{Rate: 5} // which no player reads
		for _, i := range tc.interp {
			f.Keyframes = append(f.Keyframes, Keyframe{Interp: i})
		}
		if got := f.Duration(); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.interp, got, tc.want)
		}
	}
}
