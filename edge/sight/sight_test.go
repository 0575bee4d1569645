package sight

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/testwait"
)

func sample() *Frame {
	f := &Frame{Seq: 7, At: 3 * time.Second, Exposure: 12500 * time.Microsecond, Gain: 1.5, Focal: [2]float64{320, 386}, Centre: [2]float64{320, 180}}
	f.Shape(4, 2)
	copy(f.Pix, []byte{0, 60, 120, 180, 240, 200, 100, 50, 128, 90, 128, 200})
	return f
}

// TestLayout: a frame and a wish are the bytes that the package's comment draws; each prefix is refused, and each wrong number names its place.
func TestLayout(t *testing.T) {
	f := sample()
	b := f.head(nil)
	want := []byte{'K', 'F', 4, 0, 2, 0, 0, 0, 12, 0, 0, 0, 0xd4, 0x30, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x5e, 0xd0, 0xb2, 0, 0, 0, 0, 0, 0, 0xc0, 0x3f,
		0, 0, 0xa0, 0x43, 0, 0, 0xc1, 0x43, 0, 0, 0xa0, 0x43, 0, 0, 0x34, 0x43}
	if !bytes.Equal(b, want) {
		t.Errorf("head % x, want % x", b, want)
	}
	var got Frame
	n, off, err := got.parseHead(b)
	got.Pix = f.Pix
	if err != nil || off || n != 12 || !reflect.DeepEqual(&got, f) {
		t.Errorf("%+v, %d, %v, %v", got, n, off, err)
	}
	for i := range b {
		if _, _, err := got.parseHead(b[:i]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
	for at, v := range map[int]byte{0: 'X', 1: 'W', 2: 3, 3: 6, 4: 0, 5: 3, 8: 13, 35: 0x7f} {
		c := bytes.Clone(b)
		if c[at] = v; at == 35 {
			c[34] = 0x80 // +Inf
		}
		if _, _, err := got.parseHead(c); !errors.Is(err, ErrMalformed) {
			t.Errorf("byte %d is %d: %v", at, v, err)
		}
	}
	w := Wish{1, 15, 12500 * time.Microsecond, 0.5}
	if b := w.append(nil); !bytes.Equal(b, []byte{'K', 'W', 1, 0, 0, 0, 0x70, 0x41, 0xd4, 0x30, 0, 0, 0, 0, 0, 0x3f}) {
		t.Errorf("wish % x", b)
	}
	if got, err := parseWish(w.append(nil)); err != nil || got != w {
		t.Errorf("%+v, %v", got, err)
	}
	for _, w := range []Wish{{Rate: 31}, {Rate: -1}, {Gain: -1}, {Gain: 1001}} {
		if _, err := parseWish(w.append(nil)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// FuzzHead: whatever a peer sends, what is taken is written as it came, and a picture has the bytes of its size.
func FuzzHead(f *testing.F) {
	f.Add(sample().head(nil))
	f.Add(noFrame(nil, "asleep"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Frame
		n, off, err := x.parseHead(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if off {
			if n > maxReason {
				t.Fatalf("reason of %d bytes", n)
			}
			return
		}
		x.Shape(x.Width, x.Height)
		if n != len(x.Pix) || n > MostWide*MostHigh*3/2 {
			t.Fatalf("%d bytes, picture of %d", n, len(x.Pix))
		}
		again := x.head(nil)
		copy(b[6:8], again[6:8]) // nothing yet
		if !bytes.Equal(again, b[:headSize]) {
			t.Fatalf("% x\n% x", again, b[:headSize])
		}
	})
}

// FuzzWish: likewise.
func FuzzWish(f *testing.F) {
	f.Add(Wish{1, 15, time.Millisecond, 1}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, err := parseWish(b); err == nil && !bytes.Equal(w.append(nil), b[:wishSize]) {
			t.Fatalf("%+v of % x", w, b)
		}
	})
}

// TestFormats: raw formats have the bytes that GOSTAI-IF-17.6 names; JPEG is smaller with less quality (GOSTAI-IF-17.11).
func TestFormats(t *testing.T) {
	f := sample()
	if b, err := Encode(f, Grey8, 0); err != nil || !bytes.Equal(b, f.Pix[:8]) {
		t.Errorf("%v, %v", b, err)
	}
	if b, err := Encode(f, RGB, 0); err != nil || len(b) != 24 || b[0] != 0 || b[1] != 0 || b[2] != 0 || !(b[9] > b[11]) { // the right half is red
		t.Errorf("%v, %v", b, err)
	}
	if _, err := Encode(f, "bmp", 0); err == nil {
		t.Error("bmp is made")
	}
	big := &Frame{}
	big.Shape(64, 64)
	for i := range big.Pix {
		big.Pix[i] = byte(i * 7)
	}
	size := map[int]int{}
	for _, q := range []int{0, 50, 100} {
		b, err := Encode(big, JPEG, q)
		if err != nil {
			t.Fatal(err)
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(b))
		if err != nil || c.Width != 64 || c.Height != 64 {
			t.Errorf("%+v, %v", c, err)
		}
		size[q] = len(b)
	}
	if size[0] >= size[50] || size[50] >= size[100] {
		t.Errorf("bytes by quality: %v", size)
	}
}

// bench is a server below a folder with a look of the test's.
func serve(t *testing.T, dir, path string, look func(context.Context, *Server)) (s *Server, end func()) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = Listen(root, path); err != nil {
		t.Fatal(err)
	}
	_ = root.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func(ctx context.Context) { look(ctx, s) }) }()
	ended := false
	end = func() {
		if cancel(); !ended {
			ended = true
			if err := testwait.For(t, done, "the end of the server"); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return s, end
}

func dial(t *testing.T, dir, path string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// count gives frames with numbers in their pixels as fast as it may, and counts the looks.
func count(looks *atomic.Int32) func(context.Context, *Server) {
	return func(ctx context.Context, s *Server) {
		looks.Add(1)
		var f Frame
		f.Shape(320, 240)
		for ctx.Err() == nil {
			f.Seq = 0
			s.Give(&f)
			time.Sleep(time.Millisecond)
		}
	}
}

// TestNewestWins: a listener that does not read for a while finds the frame that was whole in its socket, then the newest; the others do not wait for it. Without a
// listener that wants pictures, there is no look.
func TestNewestWins(t *testing.T) {
	dir := t.TempDir()
	var looks atomic.Int32
	s, _ := serve(t, dir, DevicePath, count(&looks))
	slow, quick := dial(t, dir, DevicePath), dial(t, dir, DevicePath)
	time.Sleep(20 * time.Millisecond)
	if looks.Load() != 0 {
		t.Error("it looks for listeners that want nothing")
	}
	for _, c := range []*Conn{slow, quick} {
		if err := c.Ask(Wish{Rate: MostRate}); err != nil {
			t.Fatal(err)
		}
	}
	var f Frame
	for range 20 { // while the other reads none
		if err := quick.Next(&f); err != nil {
			t.Fatal(err)
		}
	}
	newest := f.Seq
	for n := 0; f.Seq < newest || n == 0; n++ {
		if err := slow.Next(&f); err != nil {
			t.Fatal(err)
		}
		if n > 6 {
			t.Fatal("a slow listener has many old frames to read")
		}
	}
	_ = quick.Close()
	if err := slow.Ask(Wish{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "no wishes", testwait.Holds(func() bool { return s.Wish().Rate == 0 }))
	if err := slow.Ask(Wish{Rate: 5}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "another look", testwait.Holds(func() bool { return looks.Load() == 2 }))
}

// TestStrangers: a peer that sends nonsense is cut off, as is one too many; the rest hear frames as before.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	var looks atomic.Int32
	serve(t, dir, DevicePath, count(&looks))
	good := dial(t, dir, DevicePath)
	if err := good.Ask(Wish{Rate: 20}); err != nil {
		t.Fatal(err)
	}
	bad := dial(t, dir, DevicePath)
	if _, err := bad.conn.Write(bytes.Repeat([]byte{1}, wishSize)); err != nil {
		t.Fatal(err)
	}
	var f Frame
	if err := bad.Next(&f); !errors.Is(err, io.EOF) {
		t.Errorf("after nonsense: %v", err)
	}
	testwait.Until(t, testwait.Long, "its place", func() error {
		for range maxListeners - 1 {
			dial(t, dir, DevicePath)
		}
		return nil
	})
	many := dial(t, dir, DevicePath)
	if err := many.Next(&f); err == nil {
		t.Error("one more listener than there are places hears frames")
	}
	if err := good.Next(&f); err != nil {
		t.Error(err)
	}
}

// TestRelay: the relay asks the camera for what the robot wants, hands its frames on with their numbers, tells why there are none, and finds a camera that was
// away.
func TestRelay(t *testing.T) {
	dir := t.TempDir()
	var want atomic.Value
	want.Store(Wish{Resolution: 1, Rate: 15, Exposure: 5 * time.Millisecond, Gain: 2})
	r := Relay{Device: filepath.Join(dir, DevicePath), Wish: func() (Wish, string) { return want.Load().(Wish), "asleep" }}
	serve(t, dir, SocketPath, r.Look)
	c := dial(t, dir, SocketPath)
	if err := c.Ask(Wish{Rate: 10}); err != nil {
		t.Fatal(err)
	}
	var f Frame
	var off *Off
	if err := c.Next(&f); !errors.As(err, &off) || off.Reason != silent {
		t.Errorf("without a camera: %v", err)
	}
	asked := make(chan Wish, 100)
	camera := func(ctx context.Context, s *Server) {
		var f Frame
		f.Shape(4, 2)
		for f.Seq = 100; ctx.Err() == nil; f.Seq++ {
			asked <- s.Wish()
			s.Give(&f)
			time.Sleep(50 * time.Millisecond)
		}
	}
	_, end := serve(t, dir, DevicePath, camera)
	for off = nil; ; {
		err := c.Next(&f)
		if errors.As(err, &off) {
			continue
		}
		if err != nil || f.Seq < 100 {
			t.Fatalf("%v, number %d", err, f.Seq)
		}
		break
	}
	if w := testwait.For(t, asked, "a wish"); w != (Wish{1, 10, 5 * time.Millisecond, 2}) {
		t.Errorf("the camera was asked for %+v", w)
	}
	want.Store(Wish{})
	for off = nil; off == nil; {
		if err := c.Next(&f); err != nil && !errors.As(err, &off) {
			t.Fatal(err)
		}
	}
	if off.Reason != "asleep" {
		t.Errorf("refused: %v", off)
	}
	want.Store(Wish{Rate: 5})
	for off = nil; ; {
		if err := c.Next(&f); err == nil {
			break
		} else if !errors.As(err, &off) {
			t.Fatal(err)
		}
	}
	end()
	for off = nil; off == nil; {
		if err := c.Next(&f); err != nil && !errors.As(err, &off) {
			t.Fatal(err)
		}
	}
	if off.Reason != silent {
		t.Errorf("without the camera: %v", off)
	}
}

// TestGiveAllocatesNothing: frames that are handed out make no garbage beside robotd's loop.
func TestGiveAllocatesNothing(t *testing.T) {
	s := &Server{changed: make(chan struct{}, 1)}
	l := &listener{ready: make(chan struct{}, 1), wish: Wish{Rate: MostRate}}
	s.add(l)
	f := sample()
	s.Give(f)
	if n := testing.AllocsPerRun(100, func() {
		l.due = 0
		s.Give(f)
	}); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
	if !l.full || l.next.Seq != s.seq {
		t.Errorf("the newest frame is %d, given %d", l.next.Seq, s.seq)
	}
}

// TestHalf: each pixel is the mean of four, and the calibration fits the smaller picture.
func TestHalf(t *testing.T) {
	f := &Frame{Focal: [2]float64{320, 386}, Centre: [2]float64{4, 2}}
	f.Shape(8, 4)
	for i := range f.Pix {
		f.Pix[i] = byte(i)
	}
	h := f.Half()
	want := []byte{5, 7, 9, 11, 21, 23, 25, 27, 35, 37, 43, 45} // (0+1+8+9+2)/4 = 5 at the first
	if h.Width != 4 || h.Height != 2 || !bytes.Equal(h.Pix, want) || h.Focal != [2]float64{160, 193} || h.Centre != [2]float64{2, 1} {
		t.Errorf("%+v, want the pixels %v", h, want)
	}
}
