package port

// Sender sends frames whole: the rest of one that the port did not take goes before the next. The zero value is ready; it belongs to one goroutine.
type Sender struct{ rest []byte }

// Send writes a frame. full: the port took none of it, and it is dropped.
func (s *Sender) Send(p Port, frame []byte) (full bool, err error) {
	if len(s.rest) > 0 {
		n, err := p.Write(s.rest)
		if err != nil {
			return false, err
		}
		if s.rest = s.rest[:copy(s.rest, s.rest[n:])]; len(s.rest) > 0 {
			return true, nil
		}
	}
	n, err := p.Write(frame)
	if err != nil || n == 0 && len(frame) > 0 {
		return err == nil, err
	}
	s.rest = append(s.rest[:0], frame[n:]...)
	return false, nil
}
