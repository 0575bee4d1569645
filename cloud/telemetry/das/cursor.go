package das

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// Cursor returns the place of r.
func (r *Record) Cursor() Cursor { return Cursor{r.Received, r.Thing, r.BootID, r.Seq} }

// String writes c for a URL or a stream: microseconds since 1970, thing, boot id and seq. The zero Cursor is "".
func (c Cursor) String() string {
	if c.Received.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d~%s~%s~%d", c.Received.UnixMicro(), c.Thing, c.BootID, c.Seq)
}

// ParseCursor reads what String writes.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	fail := func(why string) (Cursor, error) {
		return Cursor{}, fmt.Errorf("cursor %.120q: %s: want microseconds~thing~boot~seq, as an earlier response gave it", s, why)
	}
	part := strings.Split(s, "~")
	if len(part) != 4 {
		return fail("not four parts")
	}
	us, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil || us < 0 || us > 1<<53 {
		return fail("time")
	}
	id, err := thing.Parse(part[1])
	if err != nil {
		return fail("thing")
	}
	if events.CheckBootID(part[2]) != nil {
		return fail("boot id")
	}
	seq, err := strconv.ParseUint(part[3], 10, 63)
	if err != nil {
		return fail("seq")
	}
	return Cursor{time.UnixMicro(us).UTC(), id, part[2], seq}, nil
}
