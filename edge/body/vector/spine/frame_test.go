package spine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
)

// golden holds one frame of every message. The bytes were made by a separate program (struct packing and zlib's CRC, inverted), not
// by this package.
var golden = []struct {
	name   string
	dir    Direction
	typ    Type
	append func(dst []byte) []byte
	hex    string
}{
	{"H01 characters", ToBody, TypeChars, func(b []byte) []byte {
		var m Chars
		copy(m[:], ">esn\n")
		return m.AppendFrame(b, ToBody)
	}, "aa483242646320003e65736e0a00000000000000000000000000000000000000000000000000000016e7d50a"},
	{"H02 data", ToBody, TypeData, litData(Genuine).AppendFrame, "aa483242666440000403020100000000ff7f0080ffff00010102030405060708090a0b0c8081" +
		"82838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3dd753603"},
	{"H02 data by the book", ToBody, TypeData, litData(Book).AppendFrame, "aa483242666440000403020100000000ff7f0080ffff00018081828384858687010203040506" +
		"0708090a0b0c88898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3cf63a478"},
	{"H03 shutdown", ToBody, TypeShutdown, command(TypeShutdown), "aa48324273640000ffffffff"},
	{"H05 mode", ToBody, TypeMode, command(TypeMode), "aa483242646d0000ffffffff"},
	{"H06 version request", ToBody, TypeVersion, command(TypeVersion), "aa48324276720000ffffffff"},
	{"H07 lights", ToBody, TypeLights, func(b []byte) []byte {
		m := Lights{
			Lights: [4]RGB{{0x10, 0x11, 0x12}, {0x13, 0x14, 0x15}, {0x16, 0x17, 0x18}, {0x19, 0x1a, 0x1b}},
			Gap12:  [4]byte{0x1c, 0x1d, 0x1e, 0x1f},
		}
		return m.AppendFrame(b)
	}, "aa4832426c731000101112131415161718191a1b1c1d1e1f9802580b"},
	{"H08 validate", ToBody, TypeValidate, command(TypeValidate), "aa48324274730000ffffffff"},
	{"H09 erase", ToBody, TypeErase, command(TypeErase), "aa48324278780000ffffffff"},
	{"B01 characters", ToHead, TypeChars, func(b []byte) []byte {
		var m Chars
		copy(m[:], "\nbooted\n")
		return m.AppendFrame(b, ToHead)
	}, "aa423248646320000a626f6f7465640a000000000000000000000000000000000000000000000000bc09e02a"},
	{"B03 boot-loader", ToHead, TypeBootloader, new(Bootloader).AppendFrame, "aa4232486266040000000000e320bbde"},
	{"B04 ACK", ToHead, TypeAck, ACK.AppendFrame, "aa423248616b04000100000086470766"},
	{"B04 NAK", ToHead, TypeAck, NAK.AppendFrame, "aa423248616b040000000000e320bbde"},
	{"B04 negative NAK", ToHead, TypeAck, Ack(-1).AppendFrame, "aa423248616b0400ffffffff00000000"},
	{"B05 version", ToHead, TypeVersion, func(b []byte) []byte {
		var m Version
		for i := range m.Gap0 {
			m.Gap0[i] = byte(i)
		}
		copy(m.ID[:], "v1.6.0 sim")
		return m.AppendFrame(b)
	}, "aa42324876722800000102030405060708090a0b0c0d0e0f101112131415161776312e362e302073696d000000000000adaff79d"},
	{"B06 unused", ToHead, TypeUnused, func(b []byte) []byte {
		var m Unused
		for i := range m {
			m[i] = byte(i)
		}
		return m.AppendFrame(b)
	}, "aa42324876731000000102030405060708090a0b0c0d0e0f771d3131"},
	{"B02 data", ToHead, TypeData, patternData().AppendFrame, "aa42324866640003" + pattern(768, 1) + "d5203f4f"},
	{"B02 data by the book", ToHead, TypeData, patternDataByTheBook().AppendFrame, "aa42324866640003" + pattern(768, 1) + "d5203f4f"},
	{"H04 firmware", ToBody, TypeFirmware, func(b []byte) []byte {
		m := Firmware{Offset: 0x0400, Words: 256}
		for i := range m.Data {
			m.Data[i] = byte(i * 7)
		}
		return m.AppendFrame(b)
	}, "aa4832427566040400040001" + pattern(1024, 7) + "7868966d"},
}

func command(t Type) func([]byte) []byte {
	return func(b []byte) []byte { return AppendCommand(b, t) }
}

// pattern returns n bytes 0, step, 2*step, ... in hex.
func pattern(n, step int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * step)
	}
	return hex.EncodeToString(b)
}

// litData is a data frame of the head with a value in each field and byte.
func litData(l Layout) *HeadData {
	m := &HeadData{
		Layout: l, Seq: 0x01020304, Motors: [4]int16{32767, -32768, -1, 256},
		Lights: [4]RGB{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}},
	}
	for i := range m.Gap {
		m.Gap[i] = byte(0x80 + i)
	}
	return m
}

// patternDataByTheBook is patternData as the table of section 12.4 has it.
func patternDataByTheBook() *BodyData {
	m := patternData()
	m.Layout, m.Power, m.Gap72, m.ProxSigma, m.Gap75 = Book, 0x4948, [2]byte{0x4a, 0x4b}, 0x4c, 0x4d
	m.ProxRange, m.ProxSignal, m.ProxAmbient, m.ProxSPADs, m.ProxSamples, m.Gap86 = 0x4f4e, 0x5150, 0x5352, 0x5554, 0x5756, [2]byte{0x46, 0x47}
	return m
}

// patternData is the data frame whose payload bytes are their own offsets: the fields of genuine programs written out by hand.
func patternData() *BodyData {
	m := &BodyData{
		Seq: 0x03020100, Status: 0x0504, FaultDevice: 0x06, FaultItem: 0x07,
		Motors: [4]MotorStatus{
			{0x0b0a0908, 0x0f0e0d0c, 0x13121110}, {0x17161514, 0x1b1a1918, 0x1f1e1d1c},
			{0x23222120, 0x27262524, 0x2b2a2928}, {0x2f2e2d2c, 0x33323130, 0x37363534},
		},
		Cliffs:     [4]uint16{0x3938, 0x3b3a, 0x3d3c, 0x3f3e},
		BatteryRaw: 0x4140, ChargerRaw: 0x4342, Temperature: 0x4544,
		Power: 0x4746, Gap72: [2]byte{0x48, 0x49}, ProxSigma: 0x4a, Gap75: 0x4b,
		ProxRange: 0x4d4c, ProxSignal: 0x4f4e, ProxAmbient: 0x5150, ProxSPADs: 0x5352, ProxSamples: 0x5554, Gap86: [2]byte{0x56, 0x57},
		ProxCalibration: 0x5b5a5958,
		Touch:           0x5d5c, Button: 0x5f5e, MicIndices: [2]uint16{0x6160, 0x6362}, ButtonRelated: 0x6564,
	}
	for i := range m.Gap102 {
		m.Gap102[i] = byte(102 + i)
	}
	for i := range m.Mics {
		low := byte(128 + 2*i)
		m.Mics[i] = int16(uint16(low) | uint16(low+1)<<8)
	}
	return m
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChecksum(t *testing.T) {
	if got := Checksum([]byte("123456789")); got != CheckValue {
		t.Errorf("Checksum(123456789) = %08X, want %08X (VEC-BODY-06)", got, CheckValue)
	}
}

func TestGoldenFrames(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, g.hex)
			if got := g.append([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("append\n got %x\nwant %x", got, want)
			}
			f, n, err := ParseFrame(g.dir, append(want, "after"...))
			if err != nil || n != len(want) || f.Type != g.typ {
				t.Fatalf("ParseFrame = type %v, %d bytes, %v; want %v, %d", f.Type, n, err, g.typ, len(want))
			}
			again, err := reappend(g.dir, f, Genuine)
			if err != nil || !bytes.Equal(again, want) {
				t.Errorf("parsed and appended again: %x, %v; want %x", again, err, want)
			}
		})
		seen[fmt.Sprint(g.dir, g.typ)] = true
	}
	for _, d := range []Direction{ToBody, ToHead} {
		for n := range 1 << 16 {
			if _, ok := PayloadSize(d, Type(n)); ok && !seen[fmt.Sprint(d, Type(n))] {
				t.Errorf("no golden frame for %v %v", Type(n), d)
			}
		}
	}
}

// reappend parses the payload of f as the message of its type and appends that message again.
func reappend(d Direction, f Frame, l Layout) ([]byte, error) {
	var m interface {
		ParsePayload([]byte) error
		AppendFrame([]byte) []byte
	}
	switch {
	case f.Type == TypeChars:
		var c Chars
		err := c.ParsePayload(f.Payload)
		return c.AppendFrame(nil, d), err
	case f.Type == TypeData && d == ToHead:
		m = &BodyData{Layout: l}
	case f.Type == TypeData:
		m = &HeadData{Layout: l}
	case f.Type == TypeVersion && d == ToHead:
		m = new(Version)
	case f.Type == TypeAck:
		m = new(Ack)
	case f.Type == TypeBootloader:
		m = new(Bootloader)
	case f.Type == TypeUnused:
		m = new(Unused)
	case f.Type == TypeLights:
		m = new(Lights)
	case f.Type == TypeFirmware:
		m = new(Firmware)
	default:
		return AppendCommand(nil, f.Type), nil
	}
	err := m.ParsePayload(f.Payload)
	return m.AppendFrame(nil), err
}

func TestGoldenBodyDataFields(t *testing.T) {
	f, _, err := ParseFrame(ToHead, unhex(t, "aa42324866640003"+pattern(768, 1)+"d5203f4f"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*BodyData{patternData(), patternDataByTheBook()} {
		got := BodyData{Layout: want.Layout}
		if err := got.ParsePayload(f.Payload); err != nil || got != *want {
			t.Errorf("body data: %v\n got %+v\nwant %+v", err, got, *want)
		}
	}
}

func TestGoldenHeadDataFields(t *testing.T) {
	for _, want := range []*HeadData{litData(Genuine), litData(Book)} {
		f, _, err := ParseFrame(ToBody, want.AppendFrame(nil))
		if err != nil {
			t.Fatal(err)
		}
		got := HeadData{Layout: want.Layout}
		if err := got.ParsePayload(f.Payload); err != nil || got != *want {
			t.Errorf("head data: %v\n got %+v\nwant %+v", err, got, *want)
		}
	}
}

func TestEveryPrefixIsShort(t *testing.T) {
	for _, g := range golden {
		whole := unhex(t, g.hex)
		for n := range len(whole) {
			if _, _, err := ParseFrame(g.dir, whole[:n]); err != ErrShort {
				t.Fatalf("%s: first %d of %d bytes: %v, want %v", g.name, n, len(whole), err, ErrShort)
			}
		}
	}
}

func TestParseFrameRefuses(t *testing.T) {
	good := unhex(t, "aa423248616b04000100000086470766")
	damage := func(at int, b byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = b
		return bad
	}
	for _, c := range []struct {
		name string
		dir  Direction
		in   []byte
		want error
	}{
		{"other direction", ToBody, good, ErrSync},
		{"wrong first byte", ToHead, damage(0, 0x55), ErrSync},
		{"wrong last sync byte", ToHead, damage(3, 0x55), ErrSync},
		{"unknown type", ToHead, damage(4, 0x62), ErrType},
		{"type of the other direction", ToHead, append(unhex(t, "aa423248"), AppendCommand(nil, TypeErase)[4:]...), ErrType},
		{"size of another type", ToHead, damage(6, 5), ErrSize},
		{"size beyond any frame", ToHead, damage(7, 0xff), ErrSize},
		{"payload", ToHead, damage(8, 2), ErrChecksum},
		{"checksum", ToHead, damage(15, 0), ErrChecksum},
	} {
		if _, _, err := ParseFrame(c.dir, c.in); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestAppendFrame(t *testing.T) {
	got, err := AppendFrame(nil, ToHead, TypeAck, []byte{1, 0, 0, 0})
	if want := unhex(t, "aa423248616b04000100000086470766"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("AppendFrame = %x, %v; want %x", got, err, want)
	}
	before := []byte("kept")
	if got, err := AppendFrame(before, ToHead, TypeAck, []byte{1}); !errors.Is(err, ErrSize) || !bytes.Equal(got, before) {
		t.Errorf("AppendFrame with 1 byte = %q, %v; want %q, %v", got, err, before, ErrSize)
	}
	if got, err := AppendFrame(before, ToHead, TypeErase, nil); !errors.Is(err, ErrType) || !bytes.Equal(got, before) {
		t.Errorf("AppendFrame of a foreign type = %q, %v; want %q, %v", got, err, before, ErrType)
	}
}

func TestPayloadOfAnotherSizeIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func([]byte) error
		size  int
	}{
		{"body data", new(BodyData).ParsePayload, BodyDataSize},
		{"head data", new(HeadData).ParsePayload, HeadDataSize},
		{"ack", new(Ack).ParsePayload, AckSize},
		{"boot-loader", new(Bootloader).ParsePayload, BootloaderSize},
		{"version", new(Version).ParsePayload, VersionSize},
		{"lights", new(Lights).ParsePayload, LightsSize},
		{"chars", new(Chars).ParsePayload, CharsSize},
		{"unused", new(Unused).ParsePayload, UnusedSize},
		{"firmware", new(Firmware).ParsePayload, FirmwareSize},
	} {
		for _, n := range []int{0, c.size - 1, c.size + 1} {
			if err := c.parse(make([]byte, n)); !errors.Is(err, ErrSize) {
				t.Errorf("%s from %d bytes: %v, want %v", c.name, n, err, ErrSize)
			}
		}
		if err := c.parse(make([]byte, c.size)); err != nil {
			t.Errorf("%s from %d bytes: %v", c.name, c.size, err)
		}
	}
	p := make([]byte, FirmwareSize)
	p[2], p[3] = 0x01, 0x01 // 257 words
	if err := new(Firmware).ParsePayload(p); !errors.Is(err, ErrSize) {
		t.Errorf("firmware block of 257 words: %v, want %v", err, ErrSize)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TypeData.String(), "fd (0x6466)"},
		{Type(0x0041).String(), "A? (0x0041)"},
		{ToBody.String(), "head to body"},
		{ToHead.String(), "body to head"},
		{(&Version{ID: [16]byte{'1', '.', '6'}}).String(), "1.6"},
		{(&Version{ID: [16]byte{1, 2}}).String(), "01020000000000000000000000000000"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestMicLayouts(t *testing.T) {
	var m BodyData
	for i := range m.Mics {
		m.Mics[i] = int16(i)
	}
	var got [MicSamples]int16
	for _, c := range []struct {
		layout MicLayout
		want   func(channel, sample int) int16
	}{
		{MicLayout{}, func(c, s int) int16 { return int16(4*s + c) }},
		{MicLayout{ChannelMajor: true}, func(c, s int) int16 { return int16(80*c + s) }},
		{MicLayout{Unsigned: true}, func(c, s int) int16 { return int16(4*s + c - 32768) }},
	} {
		for channel := range MicChannels {
			m.Mic(&got, channel, c.layout)
			for s := range got {
				if want := c.want(channel, s); got[s] != want {
					t.Fatalf("%+v channel %d sample %d = %d, want %d", c.layout, channel, s, got[s], want)
				}
			}
		}
	}
}

func FuzzFrameRoundTrip(f *testing.F) {
	for _, g := range golden {
		f.Add(uint8(g.dir), uint16(g.typ), unhex(f, g.hex)[HeaderSize:])
	}
	f.Fuzz(func(t *testing.T, dir uint8, typ uint16, payload []byte) {
		d := Direction(dir & 1)
		b, err := AppendFrame(nil, d, Type(typ), payload)
		if err != nil {
			return
		}
		fr, n, err := ParseFrame(d, b)
		if err != nil || n != len(b) || fr.Type != Type(typ) || !bytes.Equal(fr.Payload, payload) {
			t.Fatalf("frame %x parses as %v %x, %d bytes, %v", b, fr.Type, fr.Payload, n, err)
		}
		again, err := reappend(d, fr, Layout(dir>>1&1))
		if err != nil {
			if Type(typ) == TypeFirmware {
				return // a block that claims more words than it has
			}
			t.Fatalf("%v: %v", fr.Type, err)
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%v\n  from %x\nagain %x", fr.Type, b, again)
		}
	})
}

func TestCodecAllocatesNothing(t *testing.T) {
	body, head := patternData(), &HeadData{}
	buf := make([]byte, 0, MaxFrame)
	up, down := body.AppendFrame(nil), head.AppendFrame(nil)
	for name, fn := range map[string]func(){
		"append body data": func() { buf = body.AppendFrame(buf[:0]) },
		"append head data": func() { buf = head.AppendFrame(buf[:0]) },
		"append command":   func() { buf = AppendCommand(buf[:0], TypeMode) },
		"append ack":       func() { buf = NAK.AppendFrame(buf[:0]) },
		"parse body data": func() {
			f, _, _ := ParseFrame(ToHead, up)
			_ = body.ParsePayload(f.Payload)
		},
		"parse head data": func() {
			f, _, _ := ParseFrame(ToBody, down)
			_ = head.ParsePayload(f.Payload)
		},
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s allocates %v times, want 0", name, n)
		}
	}
}
