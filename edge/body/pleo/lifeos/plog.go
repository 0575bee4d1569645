package lifeos

import (
	"bytes"
	"fmt"
	"time"
)

// The Pleo log: a file to which triggers are appended.
const (
	plogFile  = "b:plog.txt"
	plogEvery = time.Second // between two writes
	maxPlog   = 64 << 10    // bytes; beyond that the oldest lines are dropped
)

// plog has the lines that are not in the file yet.
type plog struct {
	lines []byte
	next  time.Duration
}

// plog appends a trigger to the Pleo log where SENSOR_PLOG is enabled: the time in milliseconds, the sensor and its value (PLEO-SEN-128).
func (s *System) plog(st *sensorState, v int32) {
	if !s.sensors.all[SensorPlog].enabled {
		return
	}
	s.log(Info, LogPlog, "%d %s %d", s.ms(), st.Name, v)
	if p := &s.sensors.plog; len(p.lines) < maxPlog {
		p.lines = fmt.Appendf(p.lines, "%d %s %d\n", s.ms(), st.Name, v)
	}
}

// stepPlog writes the Pleo log, now and then.
func (s *System) stepPlog() {
	if p := &s.sensors.plog; len(p.lines) > 0 && s.now >= p.next {
		p.next = s.now + plogEvery
		s.writePlog()
	}
}

// writePlog appends to the file what is not there yet.
func (s *System) writePlog() {
	p := &s.sensors.plog
	if len(p.lines) == 0 {
		return
	}
	file, _ := s.readFile(plogFile, 2*maxPlog) // there may be none
	file = append(bytes.Clone(file), p.lines...)
	if over := len(file) - maxPlog; over > 0 {
		file = file[over:]
		file = file[bytes.IndexByte(file, '\n')+1:]
	}
	p.lines = nil
	_ = s.writeFile(plogFile, file) // writeFile logs the error
}
