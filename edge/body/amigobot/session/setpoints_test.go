package session

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// TestPacing sends a deluge: there is a command each 20 ms, the set-points and the queue in turn (AMIGO-PKT-12).
func TestPacing(t *testing.T) {
	r := ready(t, Config{})
	for i := range 16 {
		if err := r.s.Command(sip.Int(sip.Sound, i)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "one more", r.s.Command(sip.Int(sip.Sound, 16)), ErrFull)
	long := sip.Command{Number: sip.TTY2, Arg: sip.String, Text: make([]byte, 196)}
	r.run(100 * time.Millisecond)
	expect(t, "too long", r.s.Command(long), sip.ErrLength)
	before := r.s.State().Counts.Sent
	for i := range 40 { // 200 ms
		r.s.Velocity(0.1+float64(i)/1000, float64(i))
		r.step()
	}
	expect(t, "commands in 200 ms", r.s.State().Counts.Sent-before, 10)
	var kinds []string
	for _, s := range strings.Fields(r.take()) {
		kinds = append(kinds, strings.Split(s, "=")[0])
	}
	got := strings.Join(kinds, " ")
	if a, b := "11 90 21 90 11 90 21 90 11 90", "21 90 11 90 21 90 11 90 21 90"; got != a && got != b {
		t.Errorf("sent %s; want %s or %s", got, a, b)
	}
}

// TestSetPoints covers what Velocity, Wheels and the stops send, and how often (AMIGO-PKT-11, AMIGO-SYNC-12).
func TestSetPoints(t *testing.T) {
	const second = time.Second - 5*time.Millisecond
	for _, tc := range []struct {
		name string
		do   func(*Session)
		want string // in a second
	}{
		{"nothing", func(*Session) {}, "0 0"},
		{"velocity", func(s *Session) { s.Velocity(0.2, -math.Pi/4) }, "11=200 21=-45 11=200 21=-45 11=200 21=-45 11=200 21=-45"},
		{"the same again", func(s *Session) { s.Velocity(0.2, 1); s.Velocity(0.2, 1) }, "11=200 21=57 11=200 21=57 11=200 21=57 11=200 21=57"},
		{"standstill", func(s *Session) { s.Velocity(0, 0) }, "11=0 21=0 11=0 21=0 11=0 21=0 11=0 21=0"},
		{"not a number", func(s *Session) { s.Velocity(math.NaN(), math.Inf(1)) }, "11=0 21=65535 11=0 21=65535 11=0 21=65535 11=0 21=65535"},
		{"wheels", func(s *Session) { s.Wheels(-0.02, 0.02) }, "32=-255 32=-255 32=-255 32=-255"},
		{"wheels too fast", func(s *Session) { s.Wheels(9, 9) }, "32=32639 32=32639 32=32639 32=32639"},
		{"wheels after velocity", func(s *Session) { s.Velocity(1, 0); s.Wheels(0, 0) }, "32=0 32=0 32=0 32=0"},
		{"stop", func(s *Session) { s.Velocity(1, 0); s.Stop(); s.Stop() }, "29 29 29 29"},
		{"emergency stop", func(s *Session) { s.Velocity(1, 0); s.EStop() }, "55 55 55 55"},
		{"off", func(s *Session) { s.Velocity(1, 0); _ = s.Enable(false) }, "4=0 4=0 4=0 0"},
		{"on again", func(s *Session) { _ = s.Enable(false); _ = s.Enable(true) }, "4=1 0"},
		{"off before on was sent", func(s *Session) { _ = s.Enable(true); _ = s.Enable(false) }, "4=0 0 4=0 4=0 0"},
		{"enable while it drives", func(s *Session) { s.Velocity(1, 0); _ = s.Enable(true) }, "11=1000 4=1 21=0 11=1000 21=0 11=1000 21=0 11=1000 21=0"},
		{"raw motion", func(s *Session) { s.Velocity(1, 0); _ = s.Command(sip.Int(sip.DHead, 90)) }, "13=90 0"},
		{"stop cancels what waits", func(s *Session) { _ = s.Command(sip.Int(sip.Move, 500)); s.Stop() }, "29 0 29 29 29"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ready(t, Config{})
			for r.run(5*time.Millisecond) == "" { // start right behind a PULSE
			}
			for range 4 {
				r.step()
			}
			tc.do(r.s)
			expect(t, "sent", r.run(second), tc.want)
		})
	}
}

// TestOffAfterOn: a packet that came before ENABLE 1 had its effect does not cancel ENABLE 0.
func TestOffAfterOn(t *testing.T) {
	r := newRig(t, newFake(), Config{})
	r.until(Ready)
	_ = r.s.Enable(true)
	for r.take() == "" {
		r.step()
	}
	_ = r.s.Enable(false)
	r.in, _ = (&sip.Standard{Battery: 120}).Append(nil)
	expect(t, "sent", r.run(5*time.Millisecond), "4=0")
	r.run(cycle)
	expect(t, "motors", r.f.pose.Flags&sip.FlagMotors, 0)
}

// TestStopHurries: a stop does not wait for the pace of commands.
func TestStopHurries(t *testing.T) {
	r := ready(t, Config{})
	r.s.Velocity(1, 1)
	r.run(5 * time.Millisecond)
	r.s.EStop()
	expect(t, "sent", r.run(5*time.Millisecond), "55")
}

// TestMotorsOff: set-points are refused while the motors are off, and forgotten when the robot's button switches them off.
func TestMotorsOff(t *testing.T) {
	r := ready(t, Config{})
	expect(t, "Velocity with motors on", r.s.Velocity(1, 0), true)
	r.run(100 * time.Millisecond)
	r.f.pose.Flags = 0
	r.run(cycle)
	r.f.pose.Flags = sip.FlagMotors
	expect(t, "sent after the button", r.run(2*time.Second), "0 0 0 0")
	r.f.pose.Flags = 0
	r.run(cycle)
	expect(t, "Velocity with motors off", r.s.Velocity(1, 0), false)
	expect(t, "Wheels with motors off", r.s.Wheels(1, 0), false)
}

// TestSetUntilSeen loses commands whose effect shows: they are sent three times (AMIGO-PKT-11).
func TestSetUntilSeen(t *testing.T) {
	for _, tc := range []struct {
		name    string
		command sip.Command
	}{
		{"ENABLE", sip.Switch(sip.Enable, false)},
		{"SONAR", sip.Switch(sip.Sonar, false)},
		{"ADSEL", sip.Int(sip.ADSel, 3)},
		{"DIGOUT", sip.Packed(sip.DigOut, 0x81, 0x80)},
		{"HEAD", sip.Int(sip.Head, 90)},
		{"SETO", sip.Command{Number: sip.SetO}},
		{"SETV", sip.Int(sip.SetV, 500)},
		{"SETV above the limit", sip.Int(sip.SetV, 5000)},
		{"SETRV", sip.Int(sip.SetRV, 100)},
		{"SETA", sip.Int(sip.SetA, 200)},
		{"SETA deceleration", sip.Int(sip.SetA, -200)},
		{"SETRA", sip.Int(sip.SetRA, 20)},
		{"SETRA deceleration", sip.Int(sip.SetRA, -20)},
		{"ROTKP", sip.Int(sip.RotKP, 31)},
		{"ROTKV", sip.Int(sip.RotKV, 32)},
		{"ROTKI", sip.Int(sip.RotKI, 33)},
		{"TRANSKP", sip.Int(sip.TransKP, 34)},
		{"TRANSKV", sip.Int(sip.TransKV, 35)},
		{"TRANSKI", sip.Int(sip.TransKI, 36)},
		{"REVCOUNT", sip.Int(sip.RevCount, 20000)},
		{"SOUNDTOG", sip.Switch(sip.SoundTog, true)},
	} {
		for lost, want := range []struct{ sent, unconfirmed uint64 }{{1, 0}, {2, 0}, {3, 0}, {3, 1}} {
			t.Run(fmt.Sprintf("%s lost %d times", tc.name, lost), func(t *testing.T) {
				r := ready(t, Config{})
				r.f.pose.X = 1000
				r.run(cycle)
				r.f.loses = map[uint8]int{tc.command.Number: lost}
				if err := r.s.Command(tc.command); err != nil {
					t.Fatal(err)
				}
				sent, this := 0, show(tc.command, 0)
				for _, s := range strings.Fields(r.run(3 * time.Second)) {
					if s == this {
						sent++
					}
				}
				expect(t, "sent", uint64(sent), want.sent)
				expect(t, "unconfirmed", r.s.State().Counts.Unconfirmed, want.unconfirmed)
				if want.unconfirmed > 0 && !reflect.DeepEqual(r.s.State().Unconfirmed, tc.command) {
					t.Errorf("unconfirmed %+v; want %+v", r.s.State().Unconfirmed, tc.command)
				}
			})
		}
	}
	t.Run("no CONFIG to be seen", func(t *testing.T) {
		f := newFake()
		f.noConfig = true
		r := newRig(t, f, Config{Limits: Limits{Speed: 1}})
		r.until(Ready)
		expect(t, "sent", r.run(1500*time.Millisecond), "0 0 0")
		expect(t, "unconfirmed", r.s.State().Counts.Unconfirmed, 0)
	})
	t.Run("CONFIG goes silent", func(t *testing.T) {
		r := ready(t, Config{})
		r.f.noConfig = true
		_ = r.s.Command(sip.Int(sip.SetV, 100))
		r.run(3 * time.Second)
		expect(t, "unconfirmed", r.s.State().Counts.Unconfirmed, 1)
	})
}
