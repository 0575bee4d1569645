package cube

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"kennel/infra/sockpath"
)

// SocketPath is where a simulated radio listens, below the robot's root: a socket of packets, each a Packet. A connection is one scan, or one link.
const SocketPath = "dev/cube/socket"

// Kind says what a Packet is.
type Kind uint8

// The kinds. A robot asks with the first six; the radio answers each with KindDone or KindRefused, and says the others by itself.
const (
	KindScan      Kind = iota + 1 // adverts follow, those of devices in range before the answer
	KindConnect                   // Value: the address
	KindRead                      // Characteristic; the answer has Value
	KindWrite                     // Characteristic, Value
	KindSubscribe                 // Characteristic
	KindPace                      // Value: two bytes, ms
	KindDone                      // Value: what was read
	KindRefused                   // Value: why, as text
	KindAdvert                    // Value: one byte of signal, 17 of the address, the name
	KindNotify                    // Characteristic, Value
)

// Packet is a message between a robot and a simulated radio: kind, 16 bytes of the characteristic, value.
type Packet struct {
	Kind           Kind
	Characteristic UUID
	Value          []byte
}

const (
	packetHead = 1 + len(UUID{})
	// MaxPacket is the size of the largest packet; a value of Bluetooth has at most 512 bytes.
	MaxPacket   = packetHead + 512
	addressSize = len("00:00:00:00:00:00")
)

// Append appends the bytes of p.
func (p Packet) Append(b []byte) []byte {
	b = append(b, byte(p.Kind))
	b = append(b, p.Characteristic[:]...)
	return append(b, p.Value...)
}

// ParsePacket reads a packet. Its value aliases b.
func ParsePacket(b []byte) (p Packet, err error) {
	switch {
	case len(b) < packetHead || len(b) > MaxPacket:
		return p, fmt.Errorf("cube: packet of %d bytes, want %d to %d", len(b), packetHead, MaxPacket)
	case Kind(b[0]) < KindScan || Kind(b[0]) > KindNotify:
		return p, fmt.Errorf("cube: kind %d at byte 0, want %d to %d", b[0], KindScan, KindNotify)
	}
	return Packet{Kind(b[0]), UUID(b[1:packetHead]), b[packetHead:]}, nil
}

// Value returns an advertisement as the value of a packet.
func (a Advert) Value() []byte {
	b := append(make([]byte, 0, 1+addressSize+len(a.Name)), byte(a.RSSI))
	b = append(b, a.Address...)
	return append(b, a.Name...)
}

// ParseAdvert reads the value of a KindAdvert.
func ParseAdvert(b []byte) (a Advert, err error) {
	if len(b) < 1+addressSize {
		return a, fmt.Errorf("cube: advertisement of %d bytes, want at least %d", len(b), 1+addressSize)
	}
	a = Advert{RSSI: int8(b[0]), Address: string(b[1 : 1+addressSize]), Name: string(b[1+addressSize:])}
	return a, CheckAddress(a.Address)
}

// CheckAddress returns an error for a text that is no factory id of a cube: six bytes in lower case with colons (VEC-CUBE-05).
func CheckAddress(s string) error {
	if len(s) != addressSize {
		return fmt.Errorf("cube: factory id %.40q of %d characters, want %d", s, len(s), addressSize)
	}
	for i, c := range []byte(s) {
		if digit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'; i%3 == 2 && c != ':' || i%3 != 2 && !digit {
			return fmt.Errorf("cube: factory id %q: %q at character %d, want six bytes in lower case with colons", s, c, i+1)
		}
	}
	return nil
}

// Socket is the radio behind the socket at a path, such as ROOT/dev/cube/socket.
type Socket string

// answerWithin is how long a radio may take; own default.
const answerWithin = 5 * time.Second

func (path Socket) dial(ctx context.Context) (*net.UnixConn, error) {
	var c net.Conn
	err := sockpath.To(string(path), func(p string) (err error) {
		c, err = new(net.Dialer).DialContext(ctx, "unixpacket", p)
		return err
	})
	var refused *net.OpError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &refused) && ctx.Err() == nil: // no socket, or none that listens
		return nil, fmt.Errorf("%w: %w", ErrNoRadio, err)
	case err != nil:
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// Scan implements Radio. Its time begins when the radio says that it listens.
func (path Socket) Scan(ctx context.Context, long time.Duration, heard func(Advert)) error {
	c, err := path.dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // it may be closed already
	defer stop()
	defer c.Close()                                 // nothing buffered
	_ = c.SetDeadline(time.Now().Add(answerWithin)) // a closed one fails in Write
	if _, err = c.Write(Packet{Kind: KindScan}.Append(nil)); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	b := make([]byte, MaxPacket+1)
	for listens := false; ; {
		p, err := receive(c, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case listens && errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLost, err)
		case p.Kind == KindDone && !listens:
			listens = true
			_ = c.SetDeadline(time.Now().Add(long)) // a closed one fails in receive
		case p.Kind == KindAdvert:
			a, err := ParseAdvert(p.Value)
			if err != nil {
				return err
			}
			heard(a)
		}
	}
}

func receive(c net.Conn, b []byte) (Packet, error) {
	n, err := c.Read(b)
	if err != nil {
		return Packet{}, err
	}
	return ParsePacket(b[:n])
}

// Connect implements Radio.
func (path Socket) Connect(ctx context.Context, address string) (Link, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	c, err := path.dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &socketLink{conn: c, answers: make(chan Packet), values: make(chan Packet, maxValues), gone: make(chan struct{})}
	go l.hear()
	if _, err = l.ask(ctx, Packet{Kind: KindConnect, Value: []byte(address)}); err != nil {
		_ = l.Close() // as the error says
		return nil, err
	}
	return l, nil
}

// maxValues is how many values wait for Next; of more the newest are lost. Own default.
const maxValues = 64

// socketLink is a Link through a socket.
type socketLink struct {
	conn    *net.UnixConn
	asking  sync.Mutex // held from a request to its answer
	answers chan Packet
	values  chan Packet
	gone    chan struct{} // closed when the connection has ended
}

// hear sorts what comes until the connection ends.
func (l *socketLink) hear() {
	defer close(l.gone)
	for {
		p, err := receive(l.conn, make([]byte, MaxPacket+1))
		if err != nil {
			return
		}
		switch p.Kind {
		case KindNotify:
			select {
			case l.values <- p:
			default: // the reader is too slow
			}
		case KindDone, KindRefused:
			select {
			case l.answers <- p:
			case <-time.After(answerWithin):
				_ = l.conn.Close() // an answer that nothing waits for
				return
			}
		}
	}
}

// ask makes one request and returns its answer. A request without an answer ends the link, because the next answer would be taken for its own.
func (l *socketLink) ask(ctx context.Context, p Packet) ([]byte, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if _, err := l.conn.Write(p.Append(nil)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	select {
	case a := <-l.answers:
		if a.Kind == KindRefused {
			return nil, fmt.Errorf("%w: %s", ErrAbsent, a.Value)
		}
		return a.Value, nil
	case <-l.gone:
		return nil, ErrLost
	case <-ctx.Done():
		_ = l.conn.Close() // as said
		return nil, ctx.Err()
	}
}

func (l *socketLink) Read(ctx context.Context, c UUID) ([]byte, error) {
	return l.ask(ctx, Packet{Kind: KindRead, Characteristic: c})
}

func (l *socketLink) Write(ctx context.Context, c UUID, value []byte) error {
	_, err := l.ask(ctx, Packet{Kind: KindWrite, Characteristic: c, Value: value})
	return err
}

func (l *socketLink) Subscribe(ctx context.Context, c UUID) error {
	_, err := l.ask(ctx, Packet{Kind: KindSubscribe, Characteristic: c})
	return err
}

func (l *socketLink) Pace(ctx context.Context, interval time.Duration) error {
	_, err := l.ask(ctx, Packet{Kind: KindPace, Value: binary.LittleEndian.AppendUint16(nil, uint16(min(interval, time.Minute).Milliseconds()))})
	return err
}

func (l *socketLink) Next() (UUID, []byte, error) {
	select {
	case p := <-l.values:
		return p.Characteristic, p.Value, nil
	case <-l.gone:
	}
	select { // what came before the end
	case p := <-l.values:
		return p.Characteristic, p.Value, nil
	default:
		return UUID{}, nil, ErrLost
	}
}

func (l *socketLink) Close() error {
	err := l.conn.Close()
	<-l.gone
	return err
}
