package lifeos

import (
	"strings"

	"kennel/edge/pawn"
)

// maxPacket is the longest packet from the head in bytes (PLEO-PKT-11).
const maxPacket = 400

// headVersion is the answer of the head to a request of its version (PLEO-PKT-06).
const headVersion = "7361 - Nov 15 2007 21:34:25"

// packets are those from the head that wait for a script.
type packets struct {
	queue [][]byte // that wait for SENSOR_PACKET
}

// maxQueuedPackets bounds the packets that wait while the trigger is pending.
const maxQueuedPackets = 16

// packetFilter returns the bit of a packet's type (PLEO-PKT-08).
func packetFilter(letter byte) int32 {
	if letter < 'a' || letter > 'z' {
		return 0
	}
	return 1 << (letter - 'a')
}

// headPacket takes a packet from the head: it is shown under nxp, and triggers SENSOR_PACKET in profile 1.1 if the filter lets it through (PLEO-PKT-07).
func (s *System) headPacket(p []byte) {
	p = p[:min(len(p), maxPacket)]
	s.log(Info, LogNXP, "%s", strings.TrimPrefix(string(p), "v"))
	st := s.sensors.all[SensorPacket]
	if s.cfg.Profile == Profile10 || st.filter&packetFilter(p[0]) == 0 {
		return
	}
	if (st.pending || st.calling) && len(s.packets.queue) < maxQueuedPackets {
		s.packets.queue = append(s.packets.queue, p)
		return
	}
	st.data = p
	s.trigger(st, int32(len(p)))
}

// nextPacket gives SENSOR_PACKET the packet that waits.
func (s *System) nextPacket() {
	st := s.sensors.all[SensorPacket]
	if len(s.packets.queue) == 0 || st.pending || st.calling {
		return
	}
	st.data = s.packets.queue[0]
	s.packets.queue = s.packets.queue[1:]
	s.trigger(st, int32(len(st.data)))
}

// Terminal takes a line that a person typed: it runs as a command of the monitor, and triggers SENSOR_TERMINAL (PLEO-SEN-30, PLEO-MON-08). It returns the
// answer of the monitor, without its prompt.
func (s *System) Terminal(line string) string {
	const most = 64
	st := s.sensors.all[SensorTerminal]
	st.data = []byte(line[:min(len(line), most)])
	s.trigger(st, max(int32(len(st.data)), 1))
	return s.Monitor(line)
}

// sensorData copies the data of a sensor into an array of a script, a byte in each cell, with a zero behind it if there is room (PLEO-SEN-G05).
func (s *System) sensorData(e *env, st *sensorState, to, cells int32) int32 {
	data := st.data
	if st.ID == SensorBeacon && cells == 1 { // the Pleo's own id
		data = []byte{byte(s.cfg.Serial)}
	}
	n := min(int32(len(data)), max(cells, 0))
	for i, c := range data[:n] {
		if !e.M.SetCell(to+4*int32(i), int32(c)) {
			e.code = pawn.ErrMemAccess
			return 0
		}
	}
	if n < cells {
		e.M.SetCell(to+4*n, 0)
	}
	if st.ID == SensorIR || st.ID == SensorTerminal {
		st.data = st.data[n:]
	}
	return n
}
