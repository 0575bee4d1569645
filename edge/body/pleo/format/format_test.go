package format

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file is a value of any of the formats.
type file interface{ Append([]byte) ([]byte, error) }

func readers() map[string]func([]byte) (file, error) {
	return map[string]func([]byte) (file, error){
		"sound":   func(b []byte) (file, error) { return ReadSound(b) },
		"motion":  func(b []byte) (file, error) { return ReadMotion(b) },
		"command": func(b []byte) (file, error) { return ReadCommand(b) },
		"bundle":  func(b []byte) (file, error) { return ReadBundle(b) },
	}
}

// golden are files byte by byte, put together by hand from the rows.
var golden = map[string]struct {
	hex  string
	want file
}{
	"sound": {"55475346 01 6265657000000000000000000000000000000000000000000000000000000000 10 08 01 112b 0100 ffffffff 80817f80",
		&Sound{Version: 1, Name: "beep", DontPitchShift: true, Bits: 8, Channels: 1, Rate: 11025, Loops: 1, Samples: AllSamples, Data: []byte{0x80, 0x81, 0x7F, 0x80}}},
	"motion": {`55474d46 03 626f770000000000000000000000000000000000000000000000000000000000 02 01 21 03000000 0c00 484e 5344
		0df0 5344 0000 0000 0000 0110  0df0 484e 0000 0500 d8ff 0a00  0df0 484e 0600 0b00 2800 f6ff adde`,
		&Motion{Name: "bow", Timebase: 33, End: 12, Joints: []Joint{NeckHorizontal, SoundChannel}, Vectors: []Vector{
			{SoundChannel, 0, 0, 0, 0x1001}, {NeckHorizontal, 0, 5, -40, 10}, {NeckHorizontal, 6, 11, 40, -10}}}},
	"command": {`55474346 0400 6e61700000000000000000000000000000000000000000000000000000000000 0200 0200 0d00 0100 0020 1000 0200 ceff 0d00 0100 0120 0000 0000 0000`,
		&Command{Name: "nap", Properties: 2, Entries: [][]Tag{
			{{13, TagValue, 0x2000}, {16, TagMin, 0xFFCE}}, {{13, TagValue, 0x2001}, {}}}}},
}

// TestGolden: each field is where the rows say (A21).
func TestGolden(t *testing.T) {
	for name, g := range golden {
		b := unhex(t, g.hex)
		got, err := readers()[name](b)
		if err != nil || !reflect.DeepEqual(got, g.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, g.want)
			continue
		}
		if back, err := got.Append([]byte("x")); err != nil || !bytes.Equal(back[1:], b) {
			t.Errorf("%s is written as %x, %v", name, back, err)
		}
	}
}

// bundle is an application with a filler, a property and every kind of resource.
func bundle() *Bundle {
	b := &Bundle{Major: 1, Built: 1216936757, Revision: 7}
	b.Resources[Sounds] = []Resource{{"beep", []byte("SOUND1")}, {}, {"growl", []byte("SOUND-TWO")}}
	b.Resources[Motions] = []Resource{{"bow", []byte("MOTION")}}
	b.Resources[Commands] = []Resource{{strings.Repeat("n", MaxName), []byte("C")}}
	b.Resources[Scripts] = []Resource{{"main", []byte("AMX!")}, {"sensors", []byte("AMX2")}}
	b.Resources[Properties] = []Resource{{Name: "hunger"}, {Name: "age"}}
	return b
}

// TestBundleLayout is the layout that a build log of the original tools shows (PLEO-URF-12, A17): a sound of 15,989 bytes, a motion of 1,252, scripts of 564 and 700.
func TestBundleLayout(t *testing.T) {
	b := &Bundle{Major: 1, Built: 1216936757}
	b.Resources[Sounds] = []Resource{{"growl", bytes.Repeat([]byte{1}, 15989)}}
	b.Resources[Motions] = []Resource{{"bow", bytes.Repeat([]byte{2}, 1252)}}
	b.Resources[Scripts] = []Resource{{"sensors", bytes.Repeat([]byte{3}, 564)}, {"main", bytes.Repeat([]byte{4}, 700)}}
	f, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f) != 20176 {
		t.Errorf("%d bytes, want 20176", len(f))
	}
	for _, c := range []struct {
		at   int
		want string
	}{
		{0, "55475246 0100 0000 35fb8848 00000000"}, {16, "55475346 004e0000 55474d46 304e0000 55474346 604e0000 20414d58 684e0000 50524f50 c04e0000 53495a45 c84e0000 3030"},
		{0x1FE, "3030 01"}, {0x41FF, "30 02"}, {0x47FF, "30 03"}, {0x4A33, "03 04"}, {0x4DFF, "30 55475346 28000000 00020000 753e0000 67726f776c00"},
		{0x4E30, "55474d46 28000000 00420000 e4040000"}, {0x4E60, "55474346 00000000 20414d58 50000000 00480000 34020000"}, {0x4E98, "344a0000 bc020000 6d61696e00"},
		{0x4EC0, "50524f50 00000000 41444c52"},
	} {
		if want := unhex(t, c.want); !bytes.Equal(f[c.at:c.at+len(want)], want) {
			t.Errorf("at %#x: %x, want %x", c.at, f[c.at:c.at+len(want)], want)
		}
	}
}

func TestBundle(t *testing.T) {
	for _, standard := range []bool{false, true} {
		want := bundle()
		want.StandardSum = standard
		f, err := want.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadBundle(f)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, want %+v", got, want)
		}
		if back, err := got.Append(nil); err != nil || !bytes.Equal(back, f) {
			t.Errorf("written again with other bytes, %v", err)
		}
		// The indices may come in another order, and count their own head.
		i := bytes.LastIndex(f, []byte("UGMF"))
		f[i+4] += 8
		swapped := append([]byte(nil), f[16:24]...)
		copy(f[16:], f[32:40])
		copy(f[32:], swapped)
		order.PutUint32(f[len(f)-4:], adler(map[bool]uint32{true: 1}[standard], f[:len(f)-8]))
		if got, err = ReadBundle(f); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("in another order: %+v, %v", got, err)
		}
	}
	if got := []uint16{Sounds.FirstID(), Motions.FirstID(), Commands.FirstID(), Scripts.FirstID(), Properties.FirstID()}; !reflect.DeepEqual(got, []uint16{0x1000, 0x2000, 0x3000, 0x4000, 0x5000}) {
		t.Errorf("ids begin with %#x", got)
	}
	// The standard sum of "Wikipedia" is well known.
	if got := adler(1, []byte("Wikipedia")); got != 0x11E60398 {
		t.Errorf("Adler-32 %#x", got)
	}
	if got := adler(1, bytes.Repeat([]byte{255}, 100_000)); got != 0x149A302C {
		t.Errorf("Adler-32 of many bytes %#x", got)
	}
}

// TestLies: what a field says and the file does not hold is refused with its name (PLEO-FMT-02).
func TestLies(t *testing.T) {
	f, err := bundle().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	sound, motion, command := unhex(t, golden["sound"].hex), unhex(t, golden["motion"].hex), unhex(t, golden["command"].hex)
	scripts := bytes.LastIndex(f, []byte(" AMX"))
	for _, c := range []struct {
		format string
		from   []byte
		at     int
		bytes  string
		field  string
	}{
		{"sound", sound, 0, "56", "signature"}, {"sound", sound, 4, "02", "version"}, {"sound", sound, 37, "02", "info"}, {"sound", sound, 37, "30", "info"}, {"sound", sound, 38, "10", "bits per sample"},
		{"sound", sound, 39, "02", "channels"}, {"sound", sound, 40, "0000", "samples per second"}, {"sound", sound, 44, "05000000", "samples"},
		{"motion", motion, 0, "56", "signature"}, {"motion", motion, 4, "02", "version"}, {"motion", motion, 37, "14", "joints"}, {"motion", motion, 37, "03", "vectors"}, {"motion", motion, 38, "02", "angle range"},
		{"motion", motion, 39, "00", "timebase"}, {"motion", motion, 40, "04", "vectors"}, {"motion", motion, 43, "80", "vectors"}, {"motion", motion, 50, "0e", "vectors[0].tag"},
		{"motion", motion, 52, "55", "vectors[0].joint"}, {"motion", motion, 54, "09", "vectors[1].start"}, {"motion", motion, len(motion) - 2, "0d", "end mark"},
		{"command", command, 4, "05", "version"}, {"command", command, 38, "03", "table"}, {"command", command, 38, "feff feff", "table"}, {"command", command, 38, "0000", "table"}, {"command", command, 44, "04", "entries[0][0].type"},
		{"bundle", f, 4, "02", "version"}, {"bundle", f, 16, "56", "sum"}, {"bundle", f, 60, "00", "size"}, {"bundle", f, 56, "00", "size"}, {"bundle", f, len(f) - 8, "42", "sum"}, {"bundle", f, len(f) - 1, "ff", "sum"},
		{"bundle!", f, 16, "41", "index"}, {"bundle!", f, 16, "55474d46", "motions"}, {"bundle!", f, 24, hex.EncodeToString(f[16:24]), "index"}, {"bundle!", f, 20, "00000010", "sounds"}, {"bundle!", f, 20, "00020000", "sounds"},
		{"bundle!", f, scripts + 4, "51", "scripts"}, {"bundle!", f, scripts + 4, "00000100", "scripts"}, {"bundle!", f, scripts + 8, "0000ff00", "scripts[0]"}, {"bundle!", f, scripts + 12, "0000ff7f", "scripts[0]"},
		{"bundle!", f, scripts + 12, "05", "place"}, {"bundle!", f, scripts + 8, "08000000", "scripts[0]"},
	} {
		b := bytes.Clone(c.from)
		copy(b[c.at:], unhex(t, c.bytes))
		format, mended := strings.CutSuffix(c.format, "!") // the sum is right
		if mended {
			order.PutUint32(b[len(b)-4:], adler(0, b[:len(b)-8]))
		}
		_, err := readers()[format](b)
		var e *Error
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s with %s at %d: %v, want an error about %s", format, c.bytes, c.at, err, c.field)
		}
	}
	for name, b := range map[string][]byte{"sound": sound, "motion": motion, "command": command, "bundle": f} {
		for n := range b {
			if name == "sound" && n >= 48 {
				break // data may end anywhere
			}
			if _, err := readers()[name](b[:n]); err == nil {
				t.Fatalf("%s: the first %d bytes are taken", name, n)
			}
		}
	}
}

// TestUnwritable: what no file can hold is refused.
func TestUnwritable(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	tooMany := bundle()
	tooMany.Resources[Properties][0].Data = []byte{1}
	named := bundle()
	named.Resources[Scripts][0].Name = long
	for i, f := range []file{
		&Sound{Version: 2}, &Sound{Version: 1, Name: long}, &Sound{Name: "x", Bits: 8, Channels: 1, Rate: 1}, &Sound{Bits: 8, Channels: 1, Rate: 1, Samples: 1},
		&Motion{Name: long, Timebase: 33}, &Motion{}, &Motion{Timebase: 33, Joints: make([]Joint, 20)}, &Motion{Timebase: 33, Vectors: []Vector{{}}},
		&Command{}, &Command{Properties: 1, Entries: [][]Tag{{}}}, &Command{Properties: 1, Entries: [][]Tag{{{Type: 4}}}}, &Command{Name: "a\x00", Properties: 1},
		&Bundle{}, tooMany, named,
	} {
		if b, err := f.Append(nil); err == nil {
			t.Errorf("file %d is written: %x", i, b)
		}
	}
}

func TestPlays(t *testing.T) {
	motion, sound, other := Tag{PropertyMotion, TagValue, 0x2000}, Tag{PropertySound, TagValue, 0x1005}, Tag{16, TagMin, 5}
	for _, c := range []struct {
		entries [][]Tag
		want    uint16
	}{
		{[][]Tag{{motion, other}, {other, motion}}, PropertyMotion}, {[][]Tag{{other, sound}}, PropertySound},
		{[][]Tag{{motion, sound}}, 0}, {[][]Tag{{other, other}}, 0}, {[][]Tag{{motion, other}, {sound, other}}, 0}, {nil, 0}, {[][]Tag{{{PropertyMotion, TagMin, 1}, other}}, 0},
	} {
		got, err := (&Command{Properties: 2, Entries: c.entries}).Plays()
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%v plays %d, %v, want %d", c.entries, got, err, c.want)
		}
	}
}

// TestADPCM: codes worked out by hand, and that a decoder follows what its encoder was given (PLEO-USF-09).
func TestADPCM(t *testing.T) {
	// Step 7: 10 above is code 6 (7 + 3), which moves the predictor by 7 + 3 + 7/8 and the step to 13. 10 below is code 8 + 3 (6 + 3): 6 + 3 + 13/8 down.
	if got := EncodeADPCM([]byte{138, 128, 200}); !bytes.Equal(got, []byte{0x6B}) {
		t.Errorf("encoded as %x, want 6b", got)
	}
	if got := DecodeADPCM([]byte{0x6B}); !bytes.Equal(got, []byte{138, 128}) {
		t.Errorf("decoded as %d, want 138 128", got)
	}
	if got := DecodeADPCM([]byte{0x77, 0x77, 0x77, 0xFF, 0xFF, 0xFF, 0xFF}); got[5] != 255 || got[13] != 0 {
		t.Errorf("at the limits %d", got)
	}
	// Samples, less 128, as the coder of Python's audioop module encodes and decodes them, which Pleo's tools call.
	for _, c := range []struct{ samples, code, decoded string }{
		{"15151515151515151515151515151515", "fff8080800880080", "7557180f17101610151a161215181517"},
		{"154a80b5ea3d72a8dd30659ad022588dc2154a80", "ff453f812f101c101c11", "75577db5e984769dd9347a8fc929697cb01e588c"},
		{"2737", "ff", "7557"},
	} {
		if got := EncodeADPCM(unhex(t, c.samples)); hex.EncodeToString(got) != c.code {
			t.Errorf("%s is encoded as %x, want %s", c.samples, got, c.code)
		}
		if got := DecodeADPCM(unhex(t, c.code)); hex.EncodeToString(got) != c.decoded {
			t.Errorf("%s is decoded as %x, want %s", c.code, got, c.decoded)
		}
	}
	wave := make([]byte, 400)
	for i := range wave {
		wave[i] = byte(128 + 100*(i%40-20)/20)
	}
	back := DecodeADPCM(EncodeADPCM(wave))
	worst := 0
	for i := range wave {
		if i%40 > 8 { // it jumps at 0
			worst = max(worst, int(wave[i])-int(back[i]), int(back[i])-int(wave[i]))
		}
	}
	if len(back) != len(wave) || worst > 20 {
		t.Errorf("%d samples of %d, at most %d apart", len(back), len(wave), worst)
	}
	s := &Sound{ADPCM: true, Samples: 1, Data: []byte{0x6B}}
	if got := s.PCM(); !bytes.Equal(got, []byte{138}) {
		t.Errorf("one sample is %d", got)
	}
}

func TestJoints(t *testing.T) {
	letters := ""
	for _, j := range []Joint{RightElbow, LeftElbow, RightShoulder, LeftShoulder, RightKnee, LeftKnee, RightHip, LeftHip, Torso, TailHorizontal, TailVertical, NeckHorizontal, NeckVertical,
		Eyes, Jaw, SoundChannel, Transition, FootSwitch, Head} {
		letters += j.String() + " "
	}
	if letters != "RE LE RS LS RK LK RH LH TS HT VT HN VN EY JW SD TR FS HD " {
		t.Error(letters)
	}
}

// FuzzRead: what is read is written, and read as the same.
func FuzzRead(f *testing.F) {
	for _, g := range golden {
		b, _ := g.want.Append(nil)
		f.Add(b)
	}
	b, _ := bundle().Append(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 72 && string(b[:4]) == "UGRF" { // a sum that is right lets the rest be reached
			b = bytes.Clone(b)
			order.PutUint32(b[len(b)-4:], adler(0, b[:len(b)-8]))
		}
		for name, read := range readers() {
			first, err := read(b)
			if err != nil {
				continue
			}
			back, err := first.Append(nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again, err := read(back)
			if err != nil || !reflect.DeepEqual(again, first) {
				t.Fatalf("%s: %+v is read again as %+v, %v", name, first, again, err)
			}
		}
	})
}

// card is a bundle that fills Pleo's card, 3,649,536 bytes, with resources of 8 KiB.
func card() *Bundle {
	b := &Bundle{Major: 1}
	for len(b.Resources[Sounds]) < 443 {
		b.Resources[Sounds] = append(b.Resources[Sounds], Resource{Name: "sound", Data: make([]byte, 8192)})
	}
	b.Resources[Scripts] = []Resource{{Name: "main", Data: make([]byte, 1536)}}
	return b
}

func TestCard(t *testing.T) {
	f, err := card().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f) > 3_649_536 || len(f) < 3_640_000 {
		t.Errorf("%d bytes do not fill a card", len(f))
	}
	if got, err := ReadBundle(f); err != nil || !reflect.DeepEqual(got, card()) {
		t.Errorf("the card is read differently, %v", err)
	}
}

// BenchmarkCard builds and mounts a full card.
func BenchmarkCard(b *testing.B) {
	c := card()
	for b.Loop() {
		f, err := c.Append(nil)
		if err == nil {
			_, err = ReadBundle(f)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
