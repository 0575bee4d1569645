package kitapp

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/body/amigobot/session"
	"kennel/edge/sim/uart"
)

// TestParseKeys: arrows in both forms that terminals send, and Esc alone (part of AMIGO-DEMO-04, AMIGO-DEMO-06).
func TestParseKeys(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []key
	}{
		{"arrows", "\x1b[A\x1b[B\x1bOC\x1bOD", []key{up, down, right, left}},
		{"letters and space", "t w", []key{'t', ' ', 'w'}},
		{"escape", "\x1b", []key{escape}},
		{"escape twice", "\x1b\x1b", []key{escape, escape}},
		{"arrow after escape", "\x1b\x1b[A", []key{escape, up}},
		{"another sequence", "\x1b[H", []key{escape, '[', 'H'}},
		{"cut short", "\x1b[", []key{escape, '['}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseKeys(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestGuard: forward speed falls linearly to 0 between 600 and 200 mm; backward speed is free (AMIGO-DEMO-05, AMIGO-OPEN-12).
func TestGuard(t *testing.T) {
	for _, tt := range []struct {
		name              string
		speed, near, want float64
	}{
		{"free", 0.3, 6.1, 0.3}, {"at 600 mm", 0.3, 0.6, 0.3}, {"halfway", 0.3, 0.4, 0.15}, {"at 200 mm", 0.3, 0.2, 0}, {"nearer", 0.3, 0.1, 0},
		{"unknown", 0.3, 0, 0}, {"backward", -0.3, 0.1, -0.3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := guard(tt.speed, tt.near); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("got %g, want %g", got, tt.want)
			}
		})
	}
}

// seen is the state of a robot whose front sonars read these ranges at a time.
func seen(at time.Duration, metres ...float64) *session.State {
	st := &session.State{}
	for i, m := range metres {
		st.Ranges[front[i]] = session.Range{Metres: m, At: at}
	}
	return st
}

// TestNearest: the nearest of the four front sonars counts; an old or missing range hides what may be there.
func TestNearest(t *testing.T) {
	const now = 10 * time.Second
	for _, tt := range []struct {
		name string
		st   *session.State
		want float64
	}{
		{"all", seen(now, 3, 0.5, 6.1, 2), 0.5},
		{"one missing", seen(now, 3, 0.5, 6.1), 0},
		{"old", seen(now-2*fresh, 3, 3, 3, 3), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := nearest(tt.st, now); got != tt.want {
				t.Errorf("got %g, want %g", got, tt.want)
			}
		})
	}
}

// TestWander: the robot drives at 200 mm/s, turns away below 400 mm until the way is free, and backs off from a stall (AMIGO-OPEN-11).
func TestWander(t *testing.T) {
	d := &demo{client: &client{now: time.Hour}}
	stalled := seen(d.now, 3, 3, 3, 3)
	stalled.StallLeft = true
	for _, tt := range []struct {
		name string
		st   *session.State
		wait time.Duration
		v, w float64
	}{
		{"free", seen(d.now, 3, 3, 3, 3), 0, wanderSpeed, 0},
		{"near on the right", seen(d.now, 3, 3, 0.3, 3), 0, 0, wanderTurn},
		{"then nearer on the left: the same turn", seen(d.now, 0.2, 3, 0.3, 3), 0, 0, wanderTurn},
		{"free again, slowly", seen(d.now, 3, 0.4, 3, 3), 0, wanderSpeed / 2, 0},
		{"near on the left", seen(d.now, 0.3, 3, 3, 3), 0, 0, -wanderTurn},
		{"stalled", stalled, 0, -backSpeed, 0},
		{"still backing off", seen(d.now, 3, 3, 3, 3), 0, -backSpeed, 0},
		{"far enough", seen(d.now+backTime, 3, 3, 3, 3), backTime, wanderSpeed, 0},
		{"without sonar", &session.State{}, 0, 0, 0},
	} {
		d.now += tt.wait
		if v, w := d.wander(tt.st); math.Abs(v-tt.v) > 1e-9 || w != tt.w {
			t.Errorf("%s: got %g m/s, %g rad/s, want %g, %g", tt.name, v, w, tt.v, tt.w)
		}
	}
}

// TestCbreak: a terminal gives single keys without an echo until it is restored; other input stays as it is.
func TestCbreak(t *testing.T) {
	pty, err := uart.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	terminal, err := os.OpenFile(pty.SlavePath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	lines := func() bool {
		is, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return is.Lflag&(unix.ICANON|unix.ECHO) != 0
	}
	is, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	is.Lflag |= unix.ICANON | unix.ECHO
	if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, is); err != nil {
		t.Fatal(err)
	}
	restore, err := cbreak(terminal)
	if err != nil || lines() {
		t.Errorf("%v; it gives lines: %t", err, lines())
	}
	if restore(); !lines() {
		t.Error("not restored")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if restore, err = cbreak(null); err != nil {
		t.Errorf("not a terminal: %v", err)
	} else {
		restore()
	}
}
