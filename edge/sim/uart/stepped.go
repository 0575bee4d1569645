package uart

import "time"

// Stepped is a device's serial line and its time in one goroutine, as a port.Port and the clock of a loop. Time passes only while the client
// waits, a period of the device at a time. What the client sends arrives in the next period.
type Stepped struct {
	Time    time.Duration
	Next    time.Duration // end of the period under way
	In, Out []byte        // from and to the client
	Most    int           // bytes that In holds, what comes beyond them is lost; 0: no bound
	Period  func()        // lets one period pass: it advances Time and Next, takes In and adds to Out
}

// Now returns the time.
func (s *Stepped) Now() time.Duration { return s.Time }

// SleepUntil lets the time pass until t.
func (s *Stepped) SleepUntil(t time.Duration) {
	for s.Next <= t {
		s.Period()
	}
	s.Time = max(s.Time, t)
}

// Read returns what has arrived from the device.
func (s *Stepped) Read(b []byte) (int, error) {
	n := copy(b, s.Out)
	s.Out = s.Out[:copy(s.Out, s.Out[n:])]
	return n, nil
}

// Write sends b to the device.
func (s *Stepped) Write(b []byte) (int, error) {
	if s.Most > 0 {
		b = b[:min(len(b), s.Most-len(s.In))]
	}
	s.In = append(s.In, b...)
	return len(b), nil
}

// Wait lets the time pass until something has arrived, or the deadline; it reports which.
func (s *Stepped) Wait(deadline time.Duration) (bool, error) {
	for len(s.Out) == 0 && s.Next <= deadline {
		s.Period()
	}
	if len(s.Out) > 0 {
		return true, nil
	}
	s.Time = max(s.Time, deadline)
	return false, nil
}

// DropOutput forgets what has not been sent yet.
func (s *Stepped) DropOutput() error {
	s.In = s.In[:0]
	return nil
}

// Drain waits until everything is sent.
func (s *Stepped) Drain() error {
	if len(s.In) > 0 {
		s.Period()
	}
	return nil
}

// Close leaves the line. The device stays as it is.
func (s *Stepped) Close() error {
	s.Out = s.Out[:0]
	return nil
}
