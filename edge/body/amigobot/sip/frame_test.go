package sip

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// frames returns all golden packets.
func frames(t testing.TB) (all [][]byte) {
	t.Helper()
	for _, g := range goldenCommands {
		all = append(all, unhex(t, g.hex))
	}
	for _, g := range goldenMessages {
		all = append(all, unhex(t, g.hex))
	}
	return all
}

// TestPrefixIsShort cuts every golden packet at every byte.
func TestPrefixIsShort(t *testing.T) {
	for _, frame := range frames(t) {
		for n := range frame {
			if payload, took, err := ParseFrame(frame[:n]); payload != nil || took != 0 || err != ErrShort {
				t.Errorf("%d bytes of % X: % X, %d, %v; want ErrShort", n, frame, payload, took, err)
			}
		}
	}
}

// TestParseFrameErrors covers AMIGO-PKT-01, 03 and 07.
func TestParseFrameErrors(t *testing.T) {
	long := append([]byte{0xFA, 0xFB, 201}, make([]byte, 201)...)
	for _, tc := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"first header byte", []byte{0xFB}, ErrHeader},
		{"second header byte", []byte{0xFA, 0xFA}, ErrHeader},
		{"no data", []byte{0xFA, 0xFB, 2, 0, 0}, ErrLength},
		{"too long", long, ErrLength},
		{"checksum", []byte{0xFA, 0xFB, 3, 1, 0, 2}, ErrChecksum},
		{"checksum low byte first", []byte{0xFA, 0xFB, 3, 1, 1, 0}, ErrChecksum},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if payload, n, err := ParseFrame(tc.bytes); payload != nil || n != 1 || err != tc.want {
				t.Errorf("ParseFrame = % X, %d, %v; want 1 byte and %v", payload, n, err, tc.want)
			}
		})
	}
}

// TestSizeLimits: what would not fit into a packet is refused and dst stays as it was (AMIGO-PKT-03, AMIGO-PKT-05, AMIGO-XP-05).
func TestSizeLimits(t *testing.T) {
	dst := []byte{1, 2, 3}
	text := func(n int) Command { return Command{Number: TTY2, Arg: String, Text: make([]byte, n)} }
	payload := func(n int) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return AppendFrame(dst, make([]byte, n)) }
	}
	name := func(n int) string { return strings.Repeat("n", n) }
	for _, tc := range []struct {
		name      string
		good, bad func(dst []byte) ([]byte, error)
	}{
		{"payload", payload(MaxPayload), payload(MaxPayload + 1)},
		{"no payload", payload(1), payload(0)},
		{"string argument", text(MaxText).Append, text(MaxText + 1).Append},
		{"readings", (&Standard{Sonar: make([]Reading, MaxReadings)}).Append, (&Standard{Sonar: make([]Reading, MaxReadings+1)}).Append},
		{"serial data", Serial{Data: make([]byte, MaxSerial)}.Append, Serial{Data: make([]byte, MaxSerial+1)}.Append},
		{"identity", (&Identity{Name: name(194)}).Append, (&Identity{Name: name(195)}).Append},
		{"config", (&Config{Name: name(135)}).Append, (&Config{Name: name(136)}).Append},
		{"io", (&IO{Analog: make([]uint16, 97)}).Append, (&IO{Analog: make([]uint16, 98)}).Append},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.good(dst)
			if err != nil {
				t.Fatalf("longest: %v", err)
			}
			if _, n, err := ParseFrame(got[3:]); err != nil || n != len(got)-3 {
				t.Errorf("longest: %d, %v", n, err)
			}
			if got, err := tc.bad(dst); !errors.Is(err, ErrLength) || !bytes.Equal(got, dst) {
				t.Errorf("longer: % X, %v; want ErrLength", got, err)
			}
		})
	}
}

// TestOddArguments covers strings of other clients, superfluous arguments and bad ones (AMIGO-PKT-05, AMIGO-ARG-04, AMIGO-ARG-06,
// AMIGO-CMD-07).
func TestOddArguments(t *testing.T) {
	polling := func(text ...byte) Command { return Command{Polling, String, 0, text} }
	for _, tc := range []struct {
		name    string
		payload []byte
		want    Command
		err     error
	}{
		{"nothing", nil, Command{}, ErrPayload},
		{"counted", []byte{3, 0x2B, 2, 1, 5}, polling(1, 5), nil},
		{"counted with NUL", []byte{3, 0x2B, 2, 1, 5, 0}, polling(1, 5), nil},
		{"counted, empty", []byte{3, 0x2B, 0}, polling([]byte{}...), nil},
		{"NUL-terminated", []byte{3, 0x2B, 1, 2, 3, 4, 0}, polling(1, 2, 3, 4), nil},
		{"NUL-terminated, bytes behind", []byte{3, 0x2B, 7, 2, 0, 9}, polling(7, 2), nil},
		{"not terminated", []byte{3, 0x2B, 7, 2}, polling(7, 2), nil},
		{"three integers", []byte{7, 0x3B, 1, 2, 3, 4, 5, 6}, Command{SetO, Positive, 0x0201, nil}, nil},
		{"string without anything", []byte{3, 0x2B}, Command{Number: Polling}, ErrArgument},
		{"half an integer", []byte{4, 0x3B, 1}, Command{Number: Enable, Arg: Positive}, ErrArgument},
		{"unknown type", []byte{4, 0x4B, 1, 0}, Command{Number: Enable}, ErrArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseCommand(tc.payload)
			if err != tc.err || err == nil && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("ParseCommand = %+v, %v; want %+v, %v", got, err, tc.want, tc.err)
			}
		})
	}
	longest := bytes.Repeat([]byte{'x'}, MaxPayload)
	longest[1] = 0x2B
	if c, err := ParseCommand(longest); err != nil || len(c.Text) != MaxText {
		t.Errorf("longest string: %d characters, %v; want %d", len(c.Text), err, MaxText)
	}
}

// TestIntegers covers the range of arguments and what packed ones look like (AMIGO-ARG-02, AMIGO-ARG-05).
func TestIntegers(t *testing.T) {
	for _, tc := range []struct{ v, want int }{{0, 0}, {-1, -1}, {40000, 40000}, {-65535, -65535}, {65536, 65535}, {-70000, -65535}} {
		if got := Int(Vel, tc.v).Value(); got != tc.want {
			t.Errorf("Int(%d) = %d; want %d", tc.v, got, tc.want)
		}
	}
	for v := range 0x10000 {
		high, low := byte(v>>8), byte(v)
		if h, l := Packed(Vel2, high, low).Unpack(); h != high || l != low {
			t.Fatalf("Packed(%#x, %#x) unpacks to %#x, %#x", high, low, h, l)
		}
	}
	if got, want := Packed(DigOut, 0x80, 1), (Command{DigOut, Negative, 0x7FFF, nil}); !reflect.DeepEqual(got, want) {
		t.Errorf("mask 0x80 = %+v; want %+v", got, want)
	}
}

// TestStandardTolerance: bytes of newer firmware are kept, bit 15 of a coordinate is not (AMIGO-SIP-03, 19, 21).
func TestStandardTolerance(t *testing.T) {
	want := moving()
	want.Extra = []byte{1, 2, 3}
	frame, err := want.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, _, err := ParseFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	payload = bytes.Clone(payload)
	payload[2] |= 0x80
	payload[4] |= 0x80
	var got Standard
	if err := got.Parse(payload); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, want)
	}
}

// TestUnwrap crosses the ends of the 15-bit range (AMIGO-SIP-03).
func TestUnwrap(t *testing.T) {
	for _, tc := range []struct {
		last, now uint16
		want      int
	}{{0, 0, 0}, {100, 350, 250}, {350, 100, -250}, {32767, 0, 1}, {0, 32767, -1}, {32000, 500, 1268}, {0, 16383, 16383}, {16384, 0, -16384}} {
		if got := Unwrap(tc.last, tc.now); got != tc.want {
			t.Errorf("Unwrap(%d, %d) = %d; want %d", tc.last, tc.now, got, tc.want)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, frame := range frames(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		payload, n, err := ParseFrame(b)
		if err != nil {
			return
		}
		if got, err := AppendFrame(nil, payload); err != nil || !bytes.Equal(got, b[:n]) {
			t.Errorf("AppendFrame = % X, %v; want % X", got, err, b[:n])
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, g := range goldenCommands {
		f.Add(unhex(f, g.hex)[3:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > MaxPayload {
			return
		}
		want, err := ParseCommand(payload)
		if err != nil {
			return
		}
		frame, err := want.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := ParseFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseCommand(again); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed again: %+v, %v; want %+v", got, err, want)
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	for _, g := range goldenMessages {
		frame := unhex(f, g.hex)
		f.Add(frame[3 : len(frame)-2])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 || len(payload) > MaxPayload {
			return
		}
		want := empty(payload)
		if want == nil || want.Parse(payload) != nil {
			return
		}
		frame, err := want.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := ParseFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := empty(payload); got.Parse(again) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed again: %+v; want %+v", got, want)
		}
	})
}

// TestNothingAllocates covers what a loop sends and receives.
func TestNothingAllocates(t *testing.T) {
	buf := make([]byte, 0, MaxFrame)
	out, in := moving(), new(Standard)
	var e Encoders
	io := &IO{Analog: make([]uint16, 0, 5)}
	wire := unhex(t, goldenMessages[6].hex)
	var p Parser
	step := func() {
		frame, _ := out.Append(buf)
		p.Fill(copy(p.Space(), frame))
		payload, ok := p.Next()
		if !ok || in.Parse(payload) != nil || in.X != out.X {
			t.Fatal("no packet")
		}
		payload, _, _ = ParseFrame(Encoders{1, -1}.Append(buf))
		_ = e.Parse(payload)
		payload, _, _ = ParseFrame(wire)
		_ = io.Parse(payload)
		frame, _ = Int(Vel, -200).Append(buf)
		payload, _, _ = ParseFrame(frame)
		_, _ = ParseCommand(payload)
	}
	if allocs := testing.AllocsPerRun(100, step); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// BenchmarkChecksum is the reference of the other two: the bare checksum over the same packet.
func BenchmarkChecksum(b *testing.B) {
	frame, _ := moving().Append(nil)
	b.SetBytes(int64(len(frame)))
	var sum uint16
	for b.Loop() {
		sum += Checksum(frame[3 : len(frame)-2])
	}
	_ = sum
}

func BenchmarkParse(b *testing.B) {
	frame, _ := moving().Append(nil)
	b.SetBytes(int64(len(frame)))
	var s Standard
	for b.Loop() {
		payload, _, err := ParseFrame(frame)
		if err != nil || s.Parse(payload) != nil {
			b.Fatal("bad packet")
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, buf := moving(), make([]byte, 0, MaxFrame)
	frame, _ := s.Append(nil)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if _, err := s.Append(buf); err != nil {
			b.Fatal(err)
		}
	}
}
