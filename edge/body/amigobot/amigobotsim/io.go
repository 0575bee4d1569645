package amigobotsim

import (
	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
)

// Sizes of the robot's ports (AMIGO-IO-01, AMIGO-IO-04, AMIGO-XP-06).
const (
	digitalPorts = 0x3f // their bits
	analogPorts  = 5
	auxBuffer    = 1024
)

// ports is the user's hardware.
type ports struct {
	in, out  byte                // bit k is IO_k (AMIGO-IO-02)
	analog   [analogPorts]uint16 // 0 to 2047 (AMIGO-XP-09)
	selected int                 // analog port of the standard packet, from 1
	aux      [2][]byte           // bytes received at System and AUX2
	fetch    [2]int              // bytes that the client waits for; 0: it does not
}

// reset keeps the state of the wiring to the robot.
func (p *ports) reset() { *p = ports{in: p.in, analog: p.analog} }

// outputs are the bits of the digital ports that the FLASH makes outputs.
func (r *Robot) outputs() (bits byte) {
	for i := range 6 {
		bits |= byte(r.params.Int(flash.IO0+flash.Key(i))) << i
	}
	return bits
}

// aux1 is the connector of AUX1: before 1.3 the only one was the TTL port (AMIGO-OPEN-15).
func (r *Robot) aux1() Port {
	if r.version < 13 {
		return AUX2
	}
	return System
}

// aux takes in bytes at an auxiliary port; the oldest make room (AMIGO-XP-06).
func (r *Robot) aux(port Port, in []byte) {
	b := append(r.io.aux[port-System], in...)
	r.io.aux[port-System] = b[max(0, len(b)-auxBuffer):]
}

// request begins to wait for n bytes from a port, in place of an earlier request; 0 empties its buffer (AMIGO-XP-04 to 06).
func (p *ports) request(port Port, n int) {
	i := port - System
	if n == 0 {
		p.aux[i] = p.aux[i][:0]
	}
	p.fetch[i] = min(max(n, 0), sip.MaxSerial)
}

// taken drops the bytes that the client has fetched.
func (p *ports) taken(port Port) {
	i := port - System
	p.aux[i], p.fetch[i] = p.aux[i][p.fetch[i]:], 0
}

func (r *Robot) ioPacket(dst []byte) []byte {
	x := sip.IO{Digin: []byte{r.io.in &^ r.outputs() & digitalPorts}, Digout: []byte{r.io.out & r.outputs()}, Analog: r.io.analog[:]}
	dst, _ = x.Append(dst) // the size is fixed
	return dst
}

// SetDigital applies levels to the digital ports that are inputs; bit k is IO_k.
func (r *Robot) SetDigital(bits byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.io.in = bits
}

// SetAnalog applies a voltage, 0 to 5 V, to an analog port, 1 to 5; there are no others.
func (r *Robot) SetAnalog(port int, volts float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if port < 1 || port > analogPorts {
		return
	}
	r.io.analog[port-1] = uint16(min(max(volts/sip.AnalogUnit, 0), 2047))
}
