package amigobotsim

import "time"

// Stepped is a robot, its Control line and its time in one goroutine, as a port.Port and the clock of a loop. Time passes only while the client
// waits, a control cycle at a time. What the client sends arrives in the next cycle.
type Stepped struct {
	*Robot
	now, next time.Duration
	in, out   []byte // from and to the client
}

// NewStepped returns a robot that is on. Its time begins at one hour: 0 means never in many places.
func NewStepped(r *Robot) *Stepped {
	return &Stepped{Robot: r, now: time.Hour, next: time.Hour + cycle}
}

// period lets a control cycle pass.
func (s *Stepped) period() {
	s.now = s.next
	s.next += cycle
	out := s.Step(Lines{Control: s.in}, Lines{Control: s.out})
	s.in, s.out = s.in[:0], out[Control]
}

// Now returns the time.
func (s *Stepped) Now() time.Duration { return s.now }

// SleepUntil lets the time pass until t.
func (s *Stepped) SleepUntil(t time.Duration) {
	for s.next <= t {
		s.period()
	}
	s.now = max(s.now, t)
}

// Read returns what has arrived from the robot.
func (s *Stepped) Read(b []byte) (int, error) {
	n := copy(b, s.out)
	s.out = s.out[:copy(s.out, s.out[n:])]
	return n, nil
}

// Write sends b to the robot.
func (s *Stepped) Write(b []byte) (int, error) {
	s.in = append(s.in, b...)
	return len(b), nil
}

// Wait lets the time pass until something has arrived, or the deadline; it reports which.
func (s *Stepped) Wait(deadline time.Duration) (bool, error) {
	for len(s.out) == 0 && s.next <= deadline {
		s.period()
	}
	if len(s.out) > 0 {
		return true, nil
	}
	s.now = max(s.now, deadline)
	return false, nil
}

// DropOutput forgets what has not been sent yet.
func (s *Stepped) DropOutput() error {
	s.in = s.in[:0]
	return nil
}

// Drain waits until everything is sent.
func (s *Stepped) Drain() error {
	if len(s.in) > 0 {
		s.period()
	}
	return nil
}

// Close leaves the line. The robot and its session stay.
func (s *Stepped) Close() error {
	s.out = s.out[:0]
	return nil
}
