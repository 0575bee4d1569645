package amigobotsim

import (
	"strings"
	"testing"
	"time"
)

// TestModem: commands and their limits, the link, transparent data, and the way back to command mode (AMIGO-RF-01 to 17).
func TestModem(t *testing.T) {
	code := strings.Repeat("0a", 16)
	for _, tt := range []struct {
		name, say, want string
		linked          bool
	}{
		{"link", "WMS2\r", "OK\r\n", true},
		{"link to 002", "WMS002\r", "OK\r\n", true},
		{"wrong address", "WMS3\r", "ERROR\r\n", false},
		{"address out of range", "WMS256\r", "ERROR\r\n", false},
		{"other group", "WMI00000F\rWMS2\r", "OK\r\nERROR\r\n", false},
		{"other code", "WMP" + code + "\rWMS2\r", "OK\r\nERROR\r\n", false},
		{"newer code", "WMP16\rWMP17\rWMP1\rWMS2\r", "OK\r\nERROR\r\nOK\r\nOK\r\n", true},
		{"baud", "WMB1\rWMB6\r", "OK\r\nERROR\r\n", false},
		{"echo", "WMEP\rWMEQ\r", "OK\r\nERROR\r\n", false},
		{"frame", "WMF1024\rWMF1025\rWMF0\r", "OK\r\nERROR\r\nERROR\r\n", false},
		{"group", "WMI12345\rWMI12345g\r", "ERROR\r\nERROR\r\n", false},
		{"name", "WMJ" + strings.Repeat("x", 32) + "\rWMJ" + strings.Repeat("x", 33) + "\r", "OK\r\nERROR\r\n", false},
		{"partner's code", "WMO" + code + "\rWMO1\r", "OK\r\nERROR\r\n", false},
		{"output", "WMRP\rWMRX\r", "OK\r\nERROR\r\n", false},
		{"own address", "WMM255\rWMM0\r", "OK\r\nERROR\r\n", false},
		{"data mode without a link", "WMN\r", "ERROR\r\n", false},
		{"remote setting without a link", "WMQB\r", "ERROR\r\n", false},
		{"unknown", "ATZ\rWM\rWMZ1\r\r\n", "ERROR\r\nERROR\r\nERROR\r\n", false},
		{"list", "WMB4\rWML\r", "OK\r\nB=4\r\nE=A\r\nF=1024\r\nI=000000\r\nJ=AmigoWIREFREE\r\nM=1\r\nO=" + strings.Repeat("0", 32) +
			"\r\nP=1\r\nR=R\r\n", false},
	} {
		m := NewModem()
		if robot, answer := m.FromHost(0, []byte(tt.say)); string(answer) != tt.want || len(robot) > 0 || m.Linked() != tt.linked {
			t.Errorf("%s: %q, to the robot %q, linked %t; want %q, %t", tt.name, answer, robot, m.Linked(), tt.want, tt.linked)
		}
	}
	m := NewModem()
	if m.FromRobot([]byte("x")) != nil {
		t.Error("without a link the host hears the robot")
	}
	say := func(now time.Duration, in, robot, answer string) {
		t.Helper()
		r, a := m.FromHost(now, []byte(in))
		if string(r) != robot || string(a) != answer {
			t.Errorf("%q: to the robot %q, answer %q; want %q, %q", in, r, a, robot, answer)
		}
	}
	say(0, "WMS2\rab|||", "ab|||", "OK\r\n")
	if string(m.FromRobot([]byte("x"))) != "x" {
		t.Error("the link is not transparent")
	}
	say(time.Second, "\r", "\r", "")
	say(1050*time.Millisecond, "WMN\r", "", "") // too early
	say(1100*time.Millisecond, "WMQM\rWMN\r", "", "M=2\r\nOK\r\n")
	say(2*time.Second, "c", "c", "")
	say(2*time.Second, "|||\r", "|||\r", "")
	say(3*time.Second, "WMD\rWMN\r", "", "OK\r\nERROR\r\n")
}

// TestModemLine: a host reaches the robot through the modem.
func TestModemLine(t *testing.T) {
	line, connect := lines["TCP"](t)
	serve(t, Config{}, NewModem().On(line))
	rw := connect()
	if _, err := rw.Write([]byte("WMS2\r")); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, rw: rw}
	p.say("FAFB03000000")
	p.want("FAFB03000000")
	if n := p.parser.Counters().Skipped; n != uint64(len("OK\r\n")) {
		t.Errorf("%d bytes beside packets, want OK", n)
	}
}

// FuzzModem: whatever a host types, nothing reaches the robot without a link.
func FuzzModem(f *testing.F) {
	f.Add([]byte("WMS2\rhello|||\rWML\r"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m := NewModem()
		if robot, _ := m.FromHost(time.Second, in); len(robot) > 0 && !m.Linked() {
			t.Fatalf("to the robot %q", robot)
		}
	})
}
