package cardimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

func same(a, b Files) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return bytes.Equal(x, y) })
}

// TestRoundTrip: the image brings the files of a folder, however the reader cuts it, and ballast behind it does not matter.
func TestRoundTrip(t *testing.T) {
	folder := fstest.MapFS{"demo.urf": {Data: []byte("URF")}, "sounds/beep.usf": {Data: bytes.Repeat([]byte{7}, 3000)}, "empty.txt": {}}
	files, err := Collect(folder)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	image, err := Append([]byte("{\"version\":\"1.0.0.1\"}\n"), files)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Append([]byte("{\"version\":\"1.0.0.1\"}\n"), files)
	if !bytes.Equal(image, again) {
		t.Error("the same files give another image")
	}
	got, err := Read(iotest{bytes.NewReader(append(image, "ballast"...))})
	if err != nil || !same(got, files) {
		t.Errorf("%v, %v", got, err)
	}
	for _, without := range []string{"", "{}", "{}\n", "{}\nballast\n", strings.Repeat("x", 3*maxLine)} {
		if got, err := Read(strings.NewReader(without)); got != nil || err != nil {
			t.Errorf("%.20q: %v, %v", without, got, err)
		}
	}
	for n := len("{\"version\":\"1.0.0.1\"}\nkennel-card 1 "); n < len(image); n++ {
		if got, err := Read(bytes.NewReader(image[:n])); err == nil && got != nil {
			t.Fatalf("%d of %d bytes are enough", n, len(image))
		}
	}
}

// iotest reads one byte at a time.
type iotest struct{ r io.Reader }

func (o iotest) Read(b []byte) (int, error) { return o.r.Read(b[:1]) }

// TestRefused: what is no card is named with its offset.
func TestRefused(t *testing.T) {
	entry := func(h tar.Header, more ...tar.Header) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range append([]tar.Header{h}, more...) {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close() // the entries are empty
		return fmt.Sprintf("{}\nkennel-card 1 %d\n%s", b.Len(), b.Bytes())
	}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for name, tc := range map[string]struct {
		image  string
		offset int64
		what   string
	}{
		"no number":  {"{}\nkennel-card 1 x\n", 17, "bytes"},
		"too large":  {fmt.Sprintf("{}\nkennel-card 1 %d\n", MaxBytes+1), 17, "bytes"},
		"no archive": {"{}\nkennel-card 1 600\n" + strings.Repeat("x", 600), 21, "entry"},
		"outside":    {entry(file("../passwd")), 22, "entry"},
		"absolute":   {entry(file("/passwd")), 22, "entry"},
		"a link":     {entry(tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}), 22, "entry"},
		"twice":      {entry(file("a"), file("a")), 22 + 512, "entry"},
	} {
		files, err := Read(strings.NewReader(tc.image))
		var e *Error
		if files != nil || !errors.As(err, &e) || e.Offset != tc.offset || e.What != tc.what {
			t.Errorf("%s: %v, want offset %d, %s", name, err, tc.offset, tc.what)
		}
	}
	if _, err := Append(nil, Files{"a": make([]byte, MaxBytes+1)}); err == nil {
		t.Error("a card that is too large is written")
	}
}

// FuzzRead: no image breaks the reader, and what it takes is read again.
func FuzzRead(f *testing.F) {
	image, _ := Append([]byte("{}\n"), Files{"a/b": []byte("c")})
	f.Add(image)
	f.Add([]byte("{}\nkennel-card 1 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := Read(bytes.NewReader(b))
		if err != nil || files == nil {
			return
		}
		image, err := Append([]byte("{}\n"), files)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", files, err)
		}
		if again, err := Read(bytes.NewReader(image)); err != nil || !same(again, files) {
			t.Fatalf("%q becomes %q, %v", files, again, err)
		}
	})
}
