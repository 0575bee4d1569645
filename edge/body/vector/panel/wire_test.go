package panel

import (
	"os"
	"path"
	"strings"
	"testing"

	"kennel/edge/body/rawfd"
	"kennel/edge/face"
)

// TestPins: on a bus of the kernel's, a pin tells data from commands before the bytes are sent, and both pins of the reset are pulled and let go
// (part of VEC-FSY-04).
func TestPins(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files := map[string]string{Device: "", "sys/class/gpio/export": "", controllers[1] + "/base": "900\n"}
	for _, n := range []string{"1010", "996", "955"} {
		files["sys/class/gpio/gpio"+n+"/direction"], files["sys/class/gpio/gpio"+n+"/value"] = "", ""
	}
	for name, text := range files {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		b, err := root.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if _, err := Open(t.Context(), root); err == nil || !strings.Contains(err.Error(), "set the mode") {
		t.Errorf("a file that is no channel: %v", err)
	}
	if d := read("sys/class/gpio/gpio1010/direction"); d != "high" {
		t.Errorf("the data's pin is %q", d)
	}
	pin, err := root.OpenFile("sys/class/gpio/gpio1010/value", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := &bus{root: root, fd: int(w.Fd()), data: pin, is: true, resets: []string{"sys/class/gpio/gpio996", "sys/class/gpio/gpio955"}}
	for _, x := range []struct {
		data  bool
		level string
	}{{false, "0"}, {true, "1"}, {true, "1"}, {false, "0"}} {
		if err := b.send(x.data, []byte{7, 8}); err != nil {
			t.Fatal(err)
		}
		var got [4]byte
		if n, err := rawfd.Read(int(r.Fd()), got[:]); n != 2 || err != nil || got[0] != 7 || got[1] != 8 || read("sys/class/gpio/gpio1010/value") != x.level {
			t.Errorf("data %v: %d bytes %v, %v, pin %q", x.data, n, got, err, read("sys/class/gpio/gpio1010/value"))
		}
	}
	if err := b.reset(); err != nil {
		t.Error(err)
	}
	for _, folder := range b.resets {
		if d := read(folder + "/direction"); d != "in" && d != "inw" { // a file keeps what the kernel would not
			t.Errorf("%s is %q after the reset", folder, d)
		}
	}
	if err := root.RemoveAll("sys/class/gpio/gpio955"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), root); err == nil || read("sys/class/gpio/export") != "955" {
		t.Errorf("a pin that is not exported: %v, %q", err, read("sys/class/gpio/export"))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.send(true, []byte{1}); err == nil {
		t.Error("a closed channel takes bytes")
	}
}

// BenchmarkShow: the picture of an eye that moves, without the bus.
func BenchmarkShow(b *testing.B) {
	p := &Panel{wire: discard{}}
	var pics [2]face.Picture
	for y := 20; y < 70; y++ {
		for x := 30; x < 70; x++ {
			pics[0].Pix[y*face.Width+x], pics[1].Pix[y*face.Width+x+2] = 0x07FF, 0x07FF
		}
	}
	for i := 0; b.Loop(); i++ {
		if err := p.Show(&pics[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) send(bool, []byte) error { return nil }
func (discard) reset() error            { return nil }
func (discard) Close() error            { return nil }
