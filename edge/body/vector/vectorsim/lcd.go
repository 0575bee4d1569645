package vectorsim

import (
	"context"
	"net"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/panel"
	"kennel/edge/face"
)

// LCD is a simulated controller of a display, an ST7789V with its memory, and the glass on it (VEC-DSP-01). Its methods are safe for concurrent use.
type LCD struct {
	mu     sync.Mutex
	memory [lcdRows][lcdColumns]uint16
	busy   time.Duration // it takes nothing until then
	state  LCDState
	little bool // the low byte of a pixel comes first
	wide   bool // pixels have 16 bits

	command      byte
	given        []byte // parameters of it
	x, y         [2]int // the window, first and last
	column, row  int    // of the next pixel
	first, whole byte   // of a pixel; how many of its bytes came
}

// LCDState describes a display as it is seen from outside.
type LCDState struct {
	Awake, On, Inverted bool
	Pixels              uint64 // written since it was made
	Ignored             uint64 // bytes that came while it was busy, or that it does not know
}

const (
	lcdColumns, lcdRows = 240, 320
	lcdGlass            = 28                   // first column behind the glass
	lcdBusy             = 5 * time.Millisecond // after a reset and after each change of sleep (data sheet, 9.1.2, 9.1.12)
)

// NewLCD returns a display without a picture: its memory holds anything.
func NewLCD() *LCD {
	l := &LCD{}
	for y := range l.memory {
		for x := range l.memory[y] {
			l.memory[y][x] = uint16(uint32(x)*40503 ^ uint32(y)*12345)
		}
	}
	l.reset(0)
	return l
}

func (l *LCD) reset(now time.Duration) {
	l.state.Awake, l.state.On, l.state.Inverted, l.little, l.wide = false, false, false, false, false
	l.x, l.y = [2]int{0, lcdColumns - 1}, [2]int{0, lcdRows - 1}
	l.busy, l.command, l.given = now+lcdBusy, 0, l.given[:0]
}

// Take takes in bytes at a time, with the pins as they were (panel.Data, panel.Reset).
func (l *LCD) Take(now time.Duration, pins byte, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case pins&panel.Reset != 0:
		l.reset(now)
	case now < l.busy:
		l.state.Ignored += uint64(len(b))
	case pins&panel.Data == 0:
		for _, c := range b {
			l.begin(now, c)
		}
	case l.command == 0x2C:
		for _, v := range b {
			l.pixel(v)
		}
	default:
		for _, v := range b {
			l.given = append(l.given, v)
			l.parameter()
		}
	}
}

// begin takes a command.
func (l *LCD) begin(now time.Duration, c byte) {
	l.command, l.given, l.whole = c, l.given[:0], 0
	switch c {
	case 0x10, 0x11:
		l.state.Awake, l.busy = c == 0x11, now+lcdBusy
	case 0x20, 0x21:
		l.state.Inverted = c == 0x21
	case 0x28, 0x29:
		l.state.On = c == 0x29
	case 0x2C:
		l.column, l.row = l.x[0], l.y[0]
	}
}

// parameter takes the newest parameter of a command; those of voltages and curves change nothing that is seen here.
func (l *LCD) parameter() {
	switch g := l.given; {
	case l.command == 0x2A && len(g) == 4:
		l.x = window(g, lcdColumns)
	case l.command == 0x2B && len(g) == 4:
		l.y = window(g, lcdRows)
	case l.command == 0x3A && len(g) == 1:
		l.wide = g[0]&7 == 5
	case l.command == 0xB0 && len(g) == 2:
		l.little = g[1]&8 != 0
	case len(g) > 14:
		l.state.Ignored++
	}
}

// window is two numbers of two bytes, within the memory.
func window(b []byte, size int) [2]int {
	return [2]int{min(int(b[0])<<8|int(b[1]), size-1), min(int(b[2])<<8|int(b[3]), size-1)}
}

func (l *LCD) pixel(v byte) {
	if l.whole++; l.whole == 1 {
		l.first = v
		return
	}
	l.whole = 0
	value := uint16(l.first)<<8 | uint16(v)
	if l.little {
		value = uint16(v)<<8 | uint16(l.first)
	}
	if !l.wide || l.column > l.x[1] || l.row > l.y[1] { // an empty window
		l.state.Ignored += 2
		return
	}
	l.memory[l.row][l.column] = value
	l.state.Pixels++
	if l.column++; l.column > l.x[1] {
		l.column = l.x[0]
		if l.row++; l.row > l.y[1] {
			l.row = l.y[0]
		}
	}
}

// State returns what is seen from outside.
func (l *LCD) State() LCDState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Picture returns what the glass shows; nil: it is dark. The glass is made to be inverted.
func (l *LCD) Picture() *face.Picture {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.state.Awake || !l.state.On {
		return nil
	}
	p := &face.Picture{}
	for i := range p.Pix {
		if p.Pix[i] = l.memory[i/face.Width][lcdGlass+i%face.Width]; !l.state.Inverted {
			p.Pix[i] = ^p.Pix[i]
		}
	}
	return p
}

// ServeLCD lets the display listen on a Unix socket at path until ctx ends: a datagram is a byte of pins and what the bus carries.
func ServeLCD(ctx context.Context, path string, l *LCD) error {
	return serveChip(ctx, path, "display", func(conn *net.UnixConn) {
		b := make([]byte, 1<<13)
		for {
			n, err := conn.Read(b)
			if err != nil || n == 0 {
				return
			}
			l.Take(monoclock.Now(), b[0], b[1:n])
		}
	})
}
