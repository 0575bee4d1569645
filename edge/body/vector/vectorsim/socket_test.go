package vectorsim

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/sim/uart"
)

// newSocket returns a socket below a new folder whose path no socket address has room for, and that folder.
func newSocket(t *testing.T) (*uart.Socket, *os.Root) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	s, err := uart.ListenSocket(root, "dev/board")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s, root
}

// A foreign head at a Socket: it hears frames, and hears no old ones.
type socketHead struct {
	t    *testing.T
	conn net.Conn
	p    *spine.Parser
}

func dialSocket(t *testing.T, root *os.Root) *socketHead {
	t.Helper()
	// An address has no room for such a path: by way of a link.
	link := filepath.Join(t.TempDir(), "board")
	if err := os.Symlink(filepath.Join(root.Name(), "dev/board"), link); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &socketHead{t, conn, spine.NewParser(spine.ToHead)}
}

// hear returns the next data frame.
func (h *socketHead) hear() (d spine.BodyData, err error) {
	for {
		for f, ok := h.p.Next(); ok; f, ok = h.p.Next() {
			if f.Type == spine.TypeData && d.ParsePayload(f.Payload) == nil {
				return d, nil
			}
		}
		n, err := h.conn.Read(h.p.Space())
		if err != nil {
			return d, err
		}
		h.p.Fill(n)
	}
}

func (h *socketHead) mustHear() spine.BodyData {
	h.t.Helper()
	d, err := h.hear()
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// TestSocketIsALine: heads connect and leave while the board stays on, one at a time. Frames that no head reads in time are lost; frames
// that a head sent before it left arrive.
func TestSocketIsALine(t *testing.T) {
	const most = 30 // frames that a line keeps, at most
	s, root := newSocket(t)
	b := New(Config{BootPatience: time.Hour, DischargePerMinute: -1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.RunOn(ctx, s) }()
	await := func(what string, cond func(State) bool) State {
		t.Helper()
		limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		st, err := b.Await(limit, cond)
		if err != nil {
			t.Fatalf("%s: %v; %+v", what, err, st)
		}
		return st
	}
	st := await("frames that nobody hears", func(s State) bool { return s.Frames >= 100 && s.Overrun >= 100 })

	first := dialSocket(t, root)
	if d := first.mustHear(); uint64(d.Seq) < st.Frames {
		t.Errorf("the first frame heard is number %d, %d had been sent before", d.Seq, st.Frames)
	}
	second := dialSocket(t, root)
	if _, err := second.hear(); !errors.Is(err, io.EOF) {
		t.Errorf("a second head hears %v, want %v", err, io.EOF)
	}

	// The board pauses for a while: it hears the frames that the line kept, and then new ones.
	was := await("frames too many for the line", func(s State) bool { return s.Overrun >= 200 })
	kept := 0
	for uint64(first.mustHear().Seq) < was.Frames+was.Skipped {
		kept++
	}
	if kept < 2 || kept > most {
		t.Errorf("%d frames lay in the line, want 2 to %d", kept, most)
	}

	// It goes, and its last word arrives.
	m := spine.HeadData{Lights: [4]spine.RGB{{R: 7}}}
	if _, err := first.conn.Write(m.AppendFrame(nil)); err != nil {
		t.Fatal(err)
	}
	if err := first.conn.Close(); err != nil {
		t.Fatal(err)
	}
	await("the last word", func(s State) bool { return s.Heard == 1 })
	third := dialSocket(t, root)
	third.mustHear()
	if _, err := third.conn.Write(m.AppendFrame(nil)); err != nil {
		t.Fatal(err)
	}
	if st := await("the word of the next", func(s State) bool { return s.Heard == 2 }); st.PowerOns != 1 || st.Mode != InApplication {
		t.Errorf("switched on %d times, %v", st.PowerOns, st.Mode)
	}

	// Without power the line is silent, and what is said then is lost.
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := third.conn.Write(m.AppendFrame(nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- b.RunOn(ctx, s) }()
	before := await("power", func(s State) bool { return s.PowerOns == 2 && s.Frames > st.Frames })
	for range 2 * most { // more than it kept from before
		third.mustHear()
	}
	if before.Heard != 2 {
		t.Errorf("heard %d frames, want none of those said without power", before.Heard-2)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for {
		if _, err := third.hear(); err != nil {
			break
		}
	}
	if _, err := root.Lstat("dev/board"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// TestSocketsName: a socket that was left there is replaced, any other file is not; only its user may open it.
func TestSocketsName(t *testing.T) {
	s, root := newSocket(t)
	again, err := uart.ListenSocket(root, "dev/board") // as after a kill
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	defer s.Close()
	if fi, err := root.Lstat("dev/board"); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a socket for its user alone", fi, err)
	}
	if err := root.WriteFile("dev/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := uart.ListenSocket(root, "dev/file"); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("in the place of a file: %v", err)
	}
	if _, err := uart.ListenSocket(root, "../board"); err == nil {
		t.Error("a socket outside the root")
	}
}
