package lifeos_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/pleo/lifeos"
)

// nxp returns what the head has said since the last call.
func (p *pleo) nxp() (lines []string) {
	for _, m := range p.log {
		if m.Type == lifeos.LogNXP {
			lines = append(lines, m.Text)
		}
	}
	p.log = nil
	return lines
}

// TestHeadPackets: the head answers packets to its parts, keeps bytes, and leaves a part's sensors alone that is switched off (PLEO-PKT-03, PLEO-PKT-04,
// PLEO-PKT-10, PLEO-PKT-13; part of PLEO-PKT-02).
func TestHeadPackets(t *testing.T) {
	p := start(t, lifeos.Config{})
	p.run(second)
	p.nxp()
	ask := func(packet string, want ...string) {
		t.Helper()
		p.Monitor("pkt send " + packet)
		if got := p.nxp(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", packet, got, want)
		}
	}
	ask("?", "7361 - Nov 15 2007 21:34:25")
	ask("e hello", "e hello")
	ask("l text", "l text")
	ask("p", "p rx=4 tx=3 err=0")
	ask("m", "m0")
	ask("t", "th0", "tc0")
	ask("cg", "cg 100")
	ask("ag", "ag 0")
	ask("s w 0x1FFE 7e7d")
	ask("s r 0x1FFE 2", "s 7e7d")
	ask("s r 0x1FFF 2", "xs r 0x1FFF 2")
	ask("s w 0x1FFF 7e7d", "xs w 0x1FFF 7e7d")
	ask("s r 0 300", "xs r 0 300")
	ask("q", "xq")
	ask("it 0", "xit 0")
	for _, c := range []struct {
		letter string
		sensor lifeos.Sensor
	}{{"t", lifeos.SensorHead}, {"m", 24}, {"c", lifeos.SensorLight}, {"a", lifeos.SensorSoundLoud}, {"i", lifeos.SensorObject}} {
		reading := func() int32 { v, _ := p.Sensor(c.sensor); return v }
		ask(c.letter + "d")
		before := reading()
		p.body.Set(c.sensor, before^1)
		p.run(second)
		if reading() != before {
			t.Errorf("%s: sensor %d reads %d while it is off", c.letter, c.sensor, reading())
		}
		p.nxp()
		ask(c.letter + "e")
		p.run(second)
		if reading() != before^1 {
			t.Errorf("%s: sensor %d reads %d when it is on again", c.letter, c.sensor, reading())
		}
		if got := p.nxp(); (c.letter == "t") != slices.Equal(got, []string{"th1"}) {
			t.Errorf("%s: it says %q by itself", c.letter, got)
		}
	}
	p.Receive(lifeos.Signal{From: 9, Beacon: true})
	if v, _ := p.Sensor(lifeos.SensorBeacon); v != 9 {
		t.Errorf("beacon %d", v)
	}
	ask("id")
	p.Receive(lifeos.Signal{From: 10, Beacon: true})
	p.Receive(lifeos.Signal{Data: []byte("0E00\n")})
	if v, _ := p.Sensor(lifeos.SensorBeacon); v != 9 {
		t.Errorf("with infra-red off it receives beacon %d", v)
	}
}

// TestBrokenLine: frames between body and head that arrive damaged are dropped and counted (PLEO-PKT-01).
func TestBrokenLine(t *testing.T) {
	n, broken := 0, 0
	p := start(t, lifeos.Config{Line: func(frame []byte) []byte {
		if n++; n%3 != 0 {
			return frame
		}
		broken++
		frame = bytes.Clone(frame)
		frame[2] ^= 1
		return frame
	}})
	p.run(second)
	p.nxp()
	answers := 0
	for range 30 {
		p.Monitor("pkt send e 123")
		answers += len(p.nxp())
	}
	n = 0
	p.Monitor("pkt send p")
	got := strings.Join(p.nxp(), "")
	var rx, tx, lost int
	if _, err := fmt.Sscanf(got, "p rx=%d tx=%d err=%d", &rx, &tx, &lost); err != nil || rx+lost != 31 || lost == 0 || tx < answers || answers+broken < 30 || answers == 0 {
		t.Errorf("%d frames were broken, %d answers came, and the head says %q", broken, answers, got)
	}
}

// TestTwoPleos: two Pleos hear each other's beacons with what scripts add, exchange data and messages, and miss each other when one is silent (PLEO-SEN-03, PLEO-SEN-38,
// PLEO-SEN-125, PLEO-SEN-126, PLEO-XAPI-14).
func TestTwoPleos(t *testing.T) {
	const hello = `#include <Sensor.inc>
#include <Attention.inc>
#include <Log.inc>
public init() {
	sensor_write_data(SENSOR_BEACON, {1, 2, 3}, 3);
	p2p_set_msg(0x42, 7, -8, false);
}
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_CHIN) sensor_write_data(SENSOR_BEACON, {0}, 0);
	if (sensor == SENSOR_HEAD && value) sensor_write_data(SENSOR_IR, "hi\n", 3);
	return true;
}`
	const listen = `#include <Sensor.inc>
#include <Attention.inc>
#include <Log.inc>
public on_sensor(time, sensor_name: sensor, value) {
	new a, b, c, d, e, data[16];
	switch (sensor) {
		case SENSOR_MSG_RECEIVED: {
			sensor_read_data(SENSOR_BEACON, data, 4);
			printf("met %x %d %d %d", value, data[1], data[2], data[3]);
			if (p2p_get_msg(value, a, b, c, d, e)) printf("it says %d %d", a, b);
			a = p2p_reset(value);
			printf("reset %d %d", a, p2p_get_msg(value, a, b, c, d, e));
		}
		case SENSOR_MSG_GONE: {
			p2p_get_msg(value, a, b, c, d, e);
			printf("lost %x, heard %d of %d times", value, d, e);
		}
		case SENSOR_IR: {
			sensor_read_data(SENSOR_IR, data);
			printf("data %s", data);
		}
	}
	return true;
}`
	var one, other *pleo
	near := true
	one = start(t, lifeos.Config{Serial: 0xE20141, Card: card(t, map[string]string{"sensors": hello}), Transmit: func(s lifeos.Signal) {
		if near {
			other.Receive(s)
		}
	}})
	var heard []uint8
	other = start(t, lifeos.Config{Serial: 0xE20142, Card: card(t, map[string]string{"sensors": listen}), Transmit: func(s lifeos.Signal) { heard = append(heard, s.From) }})
	pass := func(seconds int) {
		for range seconds {
			one.run(second)
			other.run(second)
		}
	}
	pass(2) // the first beacon goes before the script
	other.run(second)
	pass(3)
	other.want("met 41 1 2 3", "it says 7 -8", "reset 1 0")
	one.body.Set(lifeos.SensorHead, 1)
	pass(1)
	if got := other.lines(); strings.TrimSpace(got) != "data hi" {
		t.Errorf("data: %q", got)
	}
	near = false
	pass(12)
	got := other.said()
	if len(got) != 1 || !strings.HasPrefix(got[0], "lost 41, heard ") {
		t.Errorf("out of sight: %q", got)
	}
	near = true
	pass(3)
	if got := other.said(); len(got) < 2 || got[0] != "met 41 1 2 3" {
		t.Errorf("near again: %q", got)
	}
	one.body.Set(lifeos.SensorChin, 1)
	pass(1)
	other.said()
	pass(14)
	if got := other.said(); len(got) != 1 || !strings.HasPrefix(got[0], "lost 41") {
		t.Errorf("with its beacon off: %q", got)
	}
	if len(heard) < 15 || heard[0] != 0x42 {
		t.Errorf("the other's beacons: %v", heard)
	}
}
