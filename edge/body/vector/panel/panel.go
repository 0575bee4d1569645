// Package panel drives the display of a Vector: a controller of the ST7789 family on an SPI bus, of whose memory of 240 x 320 pixels 184 x 96 are seen (VEC-DSP-01).
//
//	picture ──► what differs from the one shown ──► windows ──► bus
//
// A picture is 35,328 bytes, 16 ms of the bus; an eye that moves is a tenth of that.
package panel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"kennel/edge/face"
)

// Device is the display's channel, below the robot's root (part of VEC-FSY-04): one of spidev, or a Unix socket with a simulated display.
const Device = "dev/spidev1.0"

// Commands of the controller (data sheet of the ST7789V, section 9).
const (
	sleepIn     = 0x10
	sleepOut    = 0x11
	invert      = 0x21
	displayOn   = 0x29
	columns     = 0x2A // first and last, big-endian
	rows        = 0x2B
	writeMemory = 0x2C
	order       = 0x36
	format      = 0x3A
	memory      = 0xB0
	gammaUp     = 0xE0
	gammaDown   = 0xE1
)

const (
	hertz       = 17_500_000 // of the bus
	maxTransfer = 4096       // bytes that the kernel takes at once
	firstColumn = 28         // of the memory, that is seen
	apart       = 6          // this many equal lines between two changed ones begin another window, which takes six transfers
)

// command is one of the controller's, its parameters, and how long it takes.
type command struct {
	code byte
	with []byte
	then time.Duration
}

// begin are the settings of Vector's panel, while it sleeps.
var begin = []command{
	{sleepIn, nil, 120 * time.Millisecond},
	{order, []byte{0x00}, 0},
	{format, []byte{0x55}, 0},                       // RGB565
	{memory, []byte{0x00, 0x08}, 0},                 // the low byte of a pixel first
	{0xB2, []byte{0x0C, 0x0C, 0x00, 0x33, 0x33}, 0}, // porches
	{0xB7, []byte{0x72}, 0},                         // voltages of the gates: 14.97 and -8.23 V
	{0xBB, []byte{0x3B}, 0},                         // VCOM: 1.575 V
	{0xC0, []byte{0x2C}, 0},                         // control of the panel
	{0xC2, []byte{0x01}, 0},                         // the next two registers count
	{0xC3, []byte{0x14}, 0},                         // VRH
	{0xC4, []byte{0x20}, 0},                         // VDV
	{0xC6, []byte{0x0F}, 0},                         // 60 frames a second
	{0xD0, []byte{0xA4, 0xA1}, 0},                   // power
	{gammaUp, []byte{0xD0, 0x10, 0x16, 0x0A, 0x0A, 0x26, 0x3C, 0x53, 0x53, 0x18, 0x15, 0x12, 0x36, 0x3C}, 0},
	{gammaDown, []byte{0xD0, 0x11, 0x19, 0x0A, 0x09, 0x25, 0x3D, 0x35, 0x54, 0x17, 0x15, 0x12, 0x36, 0x3C}, 0},
	{0xE9, []byte{0x05, 0x05, 0x01}, 0}, // equalizing
	{invert, nil, 0},
}

// appear turns the display on.
var appear = []command{{sleepOut, nil, 120 * time.Millisecond}, {displayOn, nil, 0}}

// settles is how long the controller takes no command after a reset.
const settles = 5 * time.Millisecond

// Panel is a display that is on. It belongs to one goroutine.
type Panel struct {
	root  *os.Root
	wire  wire
	shown face.Picture
	out   [maxTransfer]byte
}

// wire leads to a controller.
type wire interface {
	// send sends bytes, a command's or data, at most maxTransfer.
	send(data bool, b []byte) error
	// reset pulls the reset's pin for a moment.
	reset() error
	Close() error
}

// Open turns the display of the robot in a folder on; it is dark. The error wraps os.ErrNotExist if there is none.
func Open(ctx context.Context, root *os.Root) (*Panel, error) {
	w, err := connect(root)
	if err != nil {
		return nil, fmt.Errorf("display: %w", err)
	}
	p := &Panel{root: root, wire: w}
	if err := p.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("display: %w", err), w.Close())
	}
	return p, nil
}

func (p *Panel) begin(ctx context.Context) error {
	if err := p.wire.reset(); err != nil {
		return err
	}
	if err := wait(ctx, settles); err != nil {
		return err
	}
	if err := p.run(ctx, begin); err != nil {
		return err
	}
	if err := p.area(area{0, 0, face.Width, face.Height}, &p.shown); err != nil { // what the memory holds after power on is anything
		return err
	}
	return p.run(ctx, appear)
}

func (p *Panel) run(ctx context.Context, all []command) error {
	for _, c := range all {
		if err := p.send(c.code, c.with); err != nil {
			return err
		}
		if err := wait(ctx, c.then); err != nil {
			return err
		}
	}
	return nil
}

// wait lets the controller finish, which does not say when it has.
func wait(ctx context.Context, long time.Duration) error {
	if long == 0 {
		return nil
	}
	select {
	case <-time.After(long):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Panel) send(code byte, with []byte) error {
	p.out[0] = code
	err := p.wire.send(false, p.out[:1])
	if err == nil && len(with) > 0 {
		err = p.wire.send(true, with)
	}
	return err
}

// area is a rectangle of pixels, without x1 and y1.
type area struct{ x0, y0, x1, y1 int }

// Show shows a picture: it sends what differs from the one before. After an error the display shows some of it, and must be opened again.
func (p *Panel) Show(pic *face.Picture) error {
	var a area
	for y := range face.Height {
		x0, x1 := differ(line(&p.shown, y), line(pic, y))
		switch {
		case x0 == x1:
			continue
		case a.y1 > 0 && y-a.y1 < apart:
			a = area{min(a.x0, x0), a.y0, max(a.x1, x1), y + 1}
			continue
		}
		if err := p.area(a, pic); err != nil {
			return fmt.Errorf("display: %w", err)
		}
		a = area{x0, y, x1, y + 1}
	}
	if err := p.area(a, pic); err != nil {
		return fmt.Errorf("display: %w", err)
	}
	p.shown = *pic
	return nil
}

func line(p *face.Picture, y int) []uint16 { return p.Pix[y*face.Width : (y+1)*face.Width] }

// differ returns the first pixel in which two lines differ, and the one after the last; equal numbers: in none.
func differ(a, b []uint16) (from, to int) {
	for to = len(a); to > 0 && a[to-1] == b[to-1]; to-- {
	}
	for from < to && a[from] == b[from] {
		from++
	}
	return from, to
}

// area sends an area of a picture.
func (p *Panel) area(a area, pic *face.Picture) error {
	if a.y1 == 0 {
		return nil
	}
	var at [4]byte
	for _, side := range [...]struct {
		code        byte
		first, last int
	}{{columns, firstColumn + a.x0, firstColumn + a.x1 - 1}, {rows, a.y0, a.y1 - 1}} {
		binary.BigEndian.PutUint16(at[:], uint16(side.first))
		binary.BigEndian.PutUint16(at[2:], uint16(side.last))
		if err := p.send(side.code, at[:]); err != nil {
			return err
		}
	}
	if err := p.send(writeMemory, nil); err != nil {
		return err
	}
	n := 0
	for y := a.y0; y < a.y1; y++ {
		for _, v := range line(pic, y)[a.x0:a.x1] {
			binary.LittleEndian.PutUint16(p.out[n:], v)
			if n += 2; n == maxTransfer {
				if err := p.wire.send(true, p.out[:]); err != nil {
					return err
				}
				n = 0
			}
		}
	}
	if n == 0 {
		return nil
	}
	return p.wire.send(true, p.out[:n])
}

// Close lets the display sleep.
func (p *Panel) Close() error { return errors.Join(p.send(sleepIn, nil), p.wire.Close()) }

// The files of the backlight, of which a panel has one or two, and the most that it may have (part of VEC-DSP-16).
var lights = []string{"face-backlight-left", "face-backlight-right", "face-backlight"}

const mostLight = 20

// Light sets the backlight, 0 to 1; what is beyond that is limited.
func (p *Panel) Light(level float64) error {
	n := int(min(max(level, 0), 1)*mostLight + 0.5)
	missing := 0
	for _, name := range lights {
		switch err := write(p.root, "sys/class/leds/"+name+"/brightness", strconv.Itoa(n)); {
		case errors.Is(err, os.ErrNotExist):
			if missing++; missing == len(lights) {
				return fmt.Errorf("backlight: %w", err)
			}
		case err != nil:
			return fmt.Errorf("backlight: %w", err)
		}
	}
	return nil
}
