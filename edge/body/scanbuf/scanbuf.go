// Package scanbuf holds the bytes of a line at which the parser of a codec has not looked yet.
package scanbuf

import "time"

// Size is how much a Window holds: several of the longest frames of any body, so that one read empties a tty.
const Size = 8192

// Window is a piece of a stream. The zero value is ready. A Window is not safe for concurrent use.
type Window struct {
	Skipped    uint64        // bytes so far that belonged to no good frame
	start, end int           // the bytes not yet looked at are buf[start:end]
	passed     uint64        // bytes before start, since the beginning
	waits      bool          // for the rest of the frame
	front      uint64        // that begins there
	since      time.Duration // then
	buf        [Size]byte
}

// Bytes returns the bytes that wait. They are valid until Space.
func (w *Window) Bytes() []byte { return w.buf[w.start:w.end] }

// Space returns the free part for the caller to read into. It is never empty while less than a Size waits.
func (w *Window) Space() []byte {
	if w.start > 0 {
		w.end = copy(w.buf[:], w.Bytes())
		w.start = 0
	}
	return w.buf[w.end:]
}

// Fill says that n bytes were read into Space.
func (w *Window) Fill(n int) { w.end += n }

// Take passes n bytes that belong to a good frame.
func (w *Window) Take(n int) {
	w.start += n
	w.passed += uint64(n)
}

// Skip passes n bytes that belong to none.
func (w *Window) Skip(n int) {
	w.Take(n)
	w.Skipped += uint64(n)
}

// Reset skips the bytes that wait.
func (w *Window) Reset() { w.Skip(w.end - w.start) }

// Expire gives up a frame that began patience ago and is still incomplete: it skips its first byte, and reports so. now is a time of any clock that
// never goes back.
func (w *Window) Expire(now, patience time.Duration) bool {
	switch {
	case w.start == w.end:
		w.waits = false
	case !w.waits || w.front != w.passed:
		w.waits, w.front, w.since = true, w.passed, now
	case now-w.since > patience:
		w.waits = false
		w.Skip(1)
		return true
	}
	return false
}
