package sysmode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/ihex"
	"kennel/edge/body/amigobot/sip"
)

// robot is a line to a Memory, with faults, and its own clock.
type robot struct {
	*Memory
	now      time.Duration
	in       sip.Parser
	out      []byte
	events   []Event
	requests int
	lost     map[int]bool // requests whose reply is lost
	noise    []byte       // before each reply
	err      error
}

func newRobot() *robot { return &robot{Memory: NewMemory("1.3", flash.Defaults())} }

func (r *robot) Now() time.Duration { return r.now }

func (r *robot) Read(b []byte) (int, error) {
	n := copy(b, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *robot) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.in.Fill(copy(r.in.Space(), b))
	for payload, ok := r.in.Next(); ok; payload, ok = r.in.Next() {
		reply, event := r.Handle(payload)
		if event != None {
			r.events = append(r.events, event)
		}
		r.requests++
		if reply != nil && !r.lost[r.requests] {
			r.out, _ = sip.AppendFrame(append(r.out, r.noise...), reply) // Handle keeps to the size
		}
	}
	return len(b), nil
}

func (r *robot) Wait(deadline time.Duration) (bool, error) {
	if len(r.out) == 0 {
		r.now = deadline
	}
	return len(r.out) > 0, nil
}

// TestParams: every parameter is read, edited and stored; a constant and a value out of range are refused by the robot itself; nothing
// takes effect before the commit (AMIGO-OPEN-02, AMIGO-CF-08, AMIGO-CF-10).
func TestParams(t *testing.T) {
	r, ctx := newRobot(), t.Context()
	r.noise = []byte{0xFA, 0xFB, 3, 0, 0, 1, 0xFA} // a packet with a bad checksum, half a header
	c := NewClient(r)
	if version, err := c.Hello(ctx); err != nil || version != "1.3" {
		t.Fatalf("%q %v", version, err)
	}
	v, err := c.Params(ctx)
	if err != nil || v != flash.Defaults() {
		t.Fatalf("parameters: %v", err)
	}
	for k := range flash.Count {
		p := k.Param()
		if p.Constant {
			continue
		}
		value := "Rover"
		if p.Kind != flash.Text {
			value = strconv.Itoa(p.Max)
		}
		if err := v.Set(p.Keyword, value); err != nil {
			t.Fatal(err)
		}
		if _, err := c.call(ctx, 1, WriteParam, append([]byte{byte(k)}, value...)...); err != nil || r.Params != flash.Defaults() {
			t.Errorf("%s: %v, or stored without commit", k, err)
		}
	}
	if err := c.Save(ctx, &v); err != nil || r.Params != v || fmt.Sprint(r.events) != fmt.Sprint([]Event{Saved}) {
		t.Errorf("save: %v, events %v", err, r.events)
	}
	for name, args := range map[string][]byte{
		"a constant": append([]byte{byte(flash.Serial)}, "X"...), "out of range": append([]byte{byte(flash.HostBaud)}, '3'),
		"no such parameter": {byte(flash.Count), '1'}, "no parameter": nil,
		"long text": append([]byte{byte(flash.Name)}, bytes.Repeat([]byte{0xFF}, 190)...),
	} {
		if _, err := c.call(ctx, 1, WriteParam, args...); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Leave(ctx); err != nil || r.events[len(r.events)-1] != Left {
		t.Errorf("leave: %v, events %v", err, r.events)
	}
}

// TestLoad: an image is erased, written, verified and reported; another one replaces it (AMIGO-DL-03).
func TestLoad(t *testing.T) {
	r, ctx := newRobot(), t.Context()
	c := NewClient(r)
	for i, segments := range [][]ihex.Segment{
		{{Address: 0, Data: bytes.Repeat([]byte{1, 2, 3}, 100)}, {Address: 0xFFFF, Data: []byte{7}}},
		{{Address: 0x100, Data: []byte{9}}},
		{{Address: 0x200000, Data: bytes.Repeat([]byte{5}, 1000)}},
	} {
		total, last := 0, 0
		for _, s := range segments {
			total += len(s.Data)
		}
		if err := c.Load(ctx, segments, func(n int) { last = n }); err != nil || last != total {
			t.Errorf("image %d: %v, %d of %d bytes", i, err, last, total)
		}
	}
	if r.Program[0] != 0xFF || r.Program[0x100] != 9 || r.Sounds[999] != 5 || r.Sounds[1000] != 0xFF {
		t.Error("memory does not hold the last images")
	}
	if want := []Event{Verified, Verified, Verified, Verified}; fmt.Sprint(r.events) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", r.events, want)
	}
	for _, tt := range []struct {
		name     string
		segments []ihex.Segment
		want     string
	}{
		{"nothing", nil, "no data"},
		{"between the regions", []ihex.Segment{{Address: 0x10000, Data: []byte{1}}}, "1 bytes at 0x10000 are neither program (0x0 to 0xffff) nor sounds"},
		{"both regions", []ihex.Segment{{Address: 0, Data: []byte{1}}, {Address: 0x200000, Data: []byte{1}}}, "bytes at 0x200000"},
		{"over the end", []ihex.Segment{{Address: 0xFFFF, Data: []byte{1, 2}}}, "2 bytes at 0xffff"},
	} {
		if err := c.Load(ctx, tt.segments, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestRefused: requests that cannot be carried out are refused with a reason and change nothing.
func TestRefused(t *testing.T) {
	r := newRobot()
	r.Program[0x10] = 3
	for _, tt := range []struct {
		name    string
		request []byte
		want    string
	}{
		{"erase without address", []byte{Erase, 0, 1}, "want an address"},
		{"erase nowhere", []byte{Erase, 0, 0, 0, 1, 0}, "no memory at 0x10000"},
		{"empty page", []byte{WritePage, 0, 0, 0, 0, 0}, "want a page of 1 to 128 bytes"},
		{"long page", append([]byte{WritePage, 0, 0, 0, 0, 0}, make([]byte, 129)...), "request of 129 bytes"},
		{"page over the end", []byte{WritePage, 0, 0xFF, 0xFF, 0, 0, 1, 2}, "2 bytes at 0xffff end after the program"},
		{"page not erased", []byte{WritePage, 0, 0x0F, 0, 0, 0, 1, 2}, "memory at 0xf is not erased"},
		{"short verify", []byte{Verify, 0, 0, 0, 0, 0, 1}, "or length and checksum"},
		{"verify over the end", []byte{Verify, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, "end after the program"},
		{"other checksum", []byte{Verify, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "has checksum 4b0bbe37, want 00000001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reply, event := r.Handle(tt.request)
			if len(reply) < 3 || reply[2] != refused || event != None || !strings.Contains(string(reply[3:]), tt.want) {
				t.Errorf("got %q, event %d, want %q", reply, event, tt.want)
			}
		})
	}
	if r.Program[0x0F] != 0xFF || r.Program[0x10] != 3 {
		t.Error("memory changed")
	}
	if reply, event := r.Handle([]byte{0}); reply != nil || event != None {
		t.Errorf("SYNC0 in System mode: %x", reply) // AMIGO-DL-07
	}
}

// TestLostReplies: a request whose reply is lost is repeated without harm; a silent or broken line is an error.
func TestLostReplies(t *testing.T) {
	r := newRobot()
	r.lost = map[int]bool{1: true, 3: true, 5: true}
	if err := NewClient(r).Load(t.Context(), []ihex.Segment{{Address: 0, Data: make([]byte, 200)}}, func(int) {}); err != nil {
		t.Errorf("lost replies: %v", err)
	}
	for _, tt := range []struct {
		name string
		set  func(r *robot)
		want error
	}{
		{"silent", func(r *robot) { r.lost = map[int]bool{1: true, 2: true, 3: true} }, ErrSilent},
		{"broken", func(r *robot) { r.err = io.ErrClosedPipe }, io.ErrClosedPipe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRobot()
			tt.set(r)
			if _, err := NewClient(r).Params(t.Context()); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewClient(newRobot()).Hello(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzHandle: no request breaks the robot or gets a reply that does not fit a packet.
func FuzzHandle(f *testing.F) {
	for n := Hello; n <= Leave; n++ {
		f.Add([]byte{n, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	}
	m := NewMemory("1.3", flash.Defaults())
	f.Fuzz(func(t *testing.T, payload []byte) {
		reply, _ := m.Handle(payload)
		if reply == nil {
			return
		}
		if _, err := sip.AppendFrame(nil, reply); err != nil || !bytes.Equal(reply[:2], payload[:2]) {
			t.Errorf("%v: % x", err, reply)
		}
	})
}
