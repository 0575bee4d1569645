package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"kennel/edge/gateway"
	"kennel/edge/mic"
	"kennel/edge/robot"
	"kennel/infra/api/robotpb"
	"kennel/infra/testwait"
)

// micro is a body's microphone.
var micro = robot.Part{Path: "body.micro[0]", Is: []string{"AudioIn"}}

// chunk is a piece of a voice from a direction, clockwise from ahead in twelfths of a turn.
func chunk(n int16, direction int) *mic.Chunk {
	c := &mic.Chunk{Seq: uint64(n), At: time.Duration(n) * time.Millisecond, Voice: direction < mic.NoDirection, Direction: direction}
	c.Samples[0], c.Samples[1] = n, -n
	return c
}

// listener returns a desk whose robot has microphones, with a token that may hear.
func listener(t *testing.T) *desk {
	d := newDesk(t, micro)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients["hear"] = gateway.Client{Name: "ear", May: only(gateway.Hear)}
	return d
}

// heard waits until a program listens.
func (d *desk) heard(t *testing.T) {
	t.Helper()
	testwait.Until(t, patience, "a listener", testwait.Holds(d.ears.Heard))
}

// TestListen: a program hears the robot's microphones sample by sample, four chunks in a message, and from where a voice comes, over gRPC and a WebSocket; when they are switched
// off it hears that at once, and why. A token that is revoked ends it, and what a program may hear it must be let in for by name (part of VEC-SEC-01).
func TestListen(t *testing.T) {
	d := listener(t)
	ctx, cancel := context.WithTimeout(as("hear"), 6*patience)
	defer cancel()
	s, err := d.dial(t).Listen(ctx, &robotpb.ListenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d.heard(t)
	socket := d.socket(t, "hear", "listen")
	hearSocket := func() *robotpb.HeardPiece {
		t.Helper()
		_, b, err := socket.Read(ctx)
		m := &robotpb.HeardPiece{}
		if err == nil {
			err = protojson.Unmarshal(b, m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := hearSocket(); m.Rate != 0 || m.Reason != "" { // it listens
		t.Errorf("before a sound: %v", m)
	}
	for i, direction := range []int{mic.NoDirection, 3, 9, mic.NoDirection} { // to the right, and to the left
		c := chunk(int16(i+1), direction)
		if i == 2 {
			c.Lost = 5
		}
		d.ears.Put(c)
	}
	next := func() *robotpb.HeardPiece {
		t.Helper()
		for {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if m.Rate != 0 || m.Reason != "" {
				return m
			}
		}
	}
	for m := hearSocket(); ; m = hearSocket() {
		if m.Rate != 0 {
			check(t, "WebSocket", m)
			break
		}
	}
	check(t, "gRPC", next())
	d.ears.Put(chunk(5, mic.NoDirection))
	d.ears.SetOff("switched off")
	if m := next(); m.Reason != "switched off" || len(m.Data) > 0 || m.Rate != 0 {
		t.Errorf("microphones that are switched off: %v", m)
	}
	if m := next(); m.Reason != "switched off" { // each second
		t.Errorf("microphones that are off: %v", m)
	}
	d.ears.SetOff("")
	for i := range 4 {
		own := chunk(int16(i), mic.NoDirection)
		own.Own = true
		d.ears.Put(own)
	}
	if m := next(); m.Rate != mic.Rate || !m.Own || m.Voice || m.Bearing != nil {
		t.Errorf("beside the robot's own sound: %v", m)
	}
	d.forget("hear")
	for err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that is revoked: %v", err)
	}
	testwait.Until(t, patience, "the end of both", testwait.Holds(func() bool { return !d.ears.Heard() }))
	if _, body := newDesk(t).post(t, "all", "listen", "{}"); !strings.Contains(body, `"code":"unable"`) {
		t.Errorf("a body without microphones: %s", body)
	}
}

func check(t *testing.T, door string, m *robotpb.HeardPiece) {
	t.Helper()
	data := m.Data
	m.Data = nil
	if m.Rate != mic.Rate || m.AtUs != 4000 || m.Missed != 5*mic.FrameSamples || !m.Voice || m.Own || m.Bearing == nil || math.Abs(*m.Bearing-math.Pi/2) > 1e-9 || m.Reason != "" {
		t.Errorf("%s: %v", door, m)
	}
	if len(data) != 4*2*mic.ChunkSamples {
		t.Fatalf("%s: %d bytes", door, len(data))
	}
	for i := range 4 {
		at := data[i*2*mic.ChunkSamples:]
		if a, b := int16(binary.LittleEndian.Uint16(at)), int16(binary.LittleEndian.Uint16(at[2:])); a != int16(i+1) || b != -a {
			t.Errorf("%s: samples %d and %d of chunk %d", door, a, b, i)
		}
	}
}

// TestListenAbuse: a program that opens streams without reading them has few, and they cost bounded memory; what it missed is counted, and another program loses nothing.
func TestListenAbuse(t *testing.T) {
	d := listener(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lazy := d.dial(t)
	hear := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer hear")
	unread, err := lazy.Listen(hear, &robotpb.ListenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d.heard(t)
	refused := make(chan error, 20)
	for range cap(refused) {
		s, err := lazy.Listen(hear, &robotpb.ListenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for err == nil && ctx.Err() == nil {
				var m *robotpb.HeardPiece
				if m, err = s.Recv(); err == nil && m.Rate == 0 {
					<-ctx.Done() // one that is served is never read
				}
			}
			refused <- err
		}()
	}
	if err := testwait.For(t, refused, "a refusal"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one stream too many: %v", err)
	}
	d.mu.Lock()
	d.clients["other"] = gateway.Client{Name: "another ear", May: only(gateway.Hear)}
	d.mu.Unlock()
	rightful, err := d.dial(t).Listen(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer other"), &robotpb.ListenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := rightful.Recv(); err != nil || m.Rate != 0 {
		t.Fatal(m, err)
	}
	before := memory()
	const rounds = 1000 // 41 s of sound
	for i := range rounds {
		for range 4 {
			d.ears.Put(chunk(int16(i), mic.NoDirection))
		}
		for m := (&robotpb.HeardPiece{}); m.Rate == 0; {
			if m, err = rightful.Recv(); err != nil || m.Missed != 0 {
				t.Fatalf("round %d: %v, %v", i, m, err)
			}
		}
	}
	if grown := memory() - before; grown > 6<<20 { // of 10 MB that were said to four
		t.Errorf("memory grew by %d MB", grown>>20)
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			d.ears.Put(chunk(0, mic.NoDirection))
		}
	}()
	samples, missed := uint64(0), uint64(0)
	for missed == 0 {
		m, err := unread.Recv()
		if err != nil {
			t.Fatalf("%v after %d samples, of which none was missed", err, samples)
		}
		samples, missed = samples+uint64(len(m.Data)/2), m.Missed
	}
	cancel()
	<-fed
}

// socket opens a call over a WebSocket, with an empty request.
func (d *desk) socket(t *testing.T, token, call string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "wss://"+d.addr+"/v1/"+call, &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: d.conf.Clone()}},
		Subprotocols: []string{"kennel.robot.v1", "kennel.bearer." + base64.RawURLEncoding.EncodeToString([]byte(token))}})
	if err == nil {
		err = c.Write(t.Context(), websocket.MessageText, []byte("{}"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	return c
}
