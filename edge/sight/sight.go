// Package sight carries a robot's pictures from its camera to the programs that look at them (part of VEC-ARCH-08: one service owns the camera).
//
//	camera, or its simulator ─► dev/camera ─ Relay in robotd ─► run/camera/socket ─ Conn: the gateway in agentd
//
// Both sockets speak the same. A listener says what it wants (Wish); a Server hands it frames, the newest in place of one that the listener was too slow
// for, and counts those in their numbers. Without listeners there are no frames: the relay hangs up, and the camera makes none. The real-time loop has no
// part in it.
//
// All numbers are little endian. A wish, from the listener, at any time:
//
//	0   'K' 'W'
//	2   u16  resolution: 0 is the highest (GOSTAI-IF-17.10)
//	4   f32  pictures a second; 0: none
//	8   u32  exposure in us; 0: automatic, also for the gain
//	12  f32  gain
//
// A frame, or why there is none, from the server:
//
//	0   'K' 'F' or 'K' 'N'
//	2   u16  width; even
//	4   u16  height; even
//	6   u16  0
//	8   u32  bytes that follow the head: of a frame width*height*3/2, of a reason at most 200
//	12  u32  exposure in us
//	16  u64  number of the frame
//	24  i64  when its exposure began, CLOCK_MONOTONIC in ns
//	32  f32  gain
//	36  f32  focal length across, in pixels, down, and the centre of projection across and down
//	52       brightness of each pixel, row by row; then the blue and the red differences of each second pixel of each second row
package sight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"math"
	"time"
)

// Wish says how a listener wants pictures.
type Wish struct {
	Resolution int           // 0 is the highest
	Rate       float64       // pictures a second, 0 to MostRate; 0: none for now
	Exposure   time.Duration // 0: automatic, also for the gain
	Gain       float64
}

// Frame is a picture as the camera took it, YCbCr with half the colours each way.
type Frame struct {
	Seq           uint64        // grows by one with each picture; a gap was missed
	At            time.Duration // when its exposure began, CLOCK_MONOTONIC, as the inertial sensors' samples are stamped (part of VEC-CFG-04)
	Width, Height int           // pixels; even
	Exposure      time.Duration
	Gain          float64
	Focal, Centre [2]float64 // of the calibration: pixels across and down (part of VEC-VIS-02)
	Pix           []byte     // brightness, blue difference, red difference
}

// Limits.
const (
	MostRate  = 30
	MostWide  = 1280
	MostHigh  = 720
	maxReason = 200
)

const (
	wishSize = 16
	headSize = 52
)

// ErrMalformed says that the other end sends what no end of ours does.
var ErrMalformed = errors.New("sight: malformed")

// Off is why there are no pictures.
type Off struct{ Reason string }

func (e *Off) Error() string { return "no picture: " + e.Reason }

// Image returns f as the image packages take it. It shares the pixels of f.
func (f *Frame) Image() *image.YCbCr {
	n := f.Width * f.Height
	return &image.YCbCr{Y: f.Pix[:n:n], Cb: f.Pix[n : n+n/4 : n+n/4], Cr: f.Pix[n+n/4 : n+n/2], YStride: f.Width, CStride: f.Width / 2,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, f.Width, f.Height)}
}

// Shape makes f a picture of w by h pixels, in its old memory if that is enough.
func (f *Frame) Shape(w, h int) {
	f.Width, f.Height = w, h
	if n := w * h * 3 / 2; cap(f.Pix) >= n {
		f.Pix = f.Pix[:n]
	} else {
		f.Pix = make([]byte, n)
	}
}

// Half returns f with half as many pixels each way: each is the mean of four. A row or column that is left over is dropped, so that the sizes stay even.
func (f *Frame) Half() *Frame {
	h := *f
	h.Pix = nil
	h.Shape(f.Width/4*2, f.Height/4*2)
	for i := range h.Focal {
		h.Focal[i], h.Centre[i] = f.Focal[i]/2, f.Centre[i]/2
	}
	to, from := h.Image(), f.Image()
	halve(to.Y, from.Y, h.Width, h.Height, f.Width)
	halve(to.Cb, from.Cb, h.Width/2, h.Height/2, f.Width/2)
	halve(to.Cr, from.Cr, h.Width/2, h.Height/2, f.Width/2)
	return &h
}

// halve fills w by h pixels with the means of four of from, whose rows have stride pixels.
func halve(to, from []byte, w, h, stride int) {
	for y := range h {
		upper, lower := from[2*y*stride:], from[(2*y+1)*stride:]
		for x := range w {
			sum := int(upper[2*x]) + int(upper[2*x+1]) + int(lower[2*x]) + int(lower[2*x+1])
			to[y*w+x] = byte((sum + 2) / 4)
		}
	}
}

// copyFrom makes f the same as g, in its own memory.
func (f *Frame) copyFrom(g *Frame) {
	pix := f.Pix
	*f = *g
	f.Pix = pix
	f.Shape(g.Width, g.Height)
	copy(f.Pix, g.Pix)
}

func (w Wish) append(b []byte) []byte {
	b = append(b, 'K', 'W')
	b = binary.LittleEndian.AppendUint16(b, uint16(w.Resolution))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(w.Rate)))
	b = binary.LittleEndian.AppendUint32(b, uint32(w.Exposure.Microseconds()))
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(w.Gain)))
}

// single is the number of 32 bits at the start of b.
func single(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }

func parseWish(b []byte) (w Wish, err error) {
	if len(b) < wishSize || b[0] != 'K' || b[1] != 'W' {
		return w, fmt.Errorf("%w: wish begins with % x, want 4b 57 and %d bytes", ErrMalformed, b[:min(len(b), 2)], wishSize)
	}
	w = Wish{int(binary.LittleEndian.Uint16(b[2:])), single(b[4:]), time.Duration(binary.LittleEndian.Uint32(b[8:])) * time.Microsecond, single(b[12:])}
	if !(w.Rate >= 0 && w.Rate <= MostRate) {
		return w, fmt.Errorf("%w: rate at byte 4 is %v, want 0 to %d", ErrMalformed, w.Rate, MostRate)
	}
	if !(w.Gain >= 0 && w.Gain <= 1000) {
		return w, fmt.Errorf("%w: gain at byte 12 is %v, want 0 to 1000", ErrMalformed, w.Gain)
	}
	return w, nil
}

// head appends the head of f to b.
func (f *Frame) head(b []byte) []byte {
	b = append(b, 'K', 'F')
	b = binary.LittleEndian.AppendUint16(b, uint16(f.Width))
	b = binary.LittleEndian.AppendUint16(b, uint16(f.Height))
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Pix)))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Exposure.Microseconds()))
	b = binary.LittleEndian.AppendUint64(b, f.Seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.At))
	for _, v := range [...]float64{f.Gain, f.Focal[0], f.Focal[1], f.Centre[0], f.Centre[1]} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}

// noFrame appends a reason why there is no frame to b.
func noFrame(b []byte, reason string) []byte {
	reason = reason[:min(len(reason), maxReason)]
	b = append(b, 'K', 'N', 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(reason)))
	return append(append(b, make([]byte, headSize-12)...), reason...)
}

// parseHead reads the head of a frame into f, and returns how many bytes follow it; off: they are a reason.
func (f *Frame) parseHead(b []byte) (n int, off bool, err error) {
	if len(b) < headSize || b[0] != 'K' || b[1] != 'F' && b[1] != 'N' {
		return 0, false, fmt.Errorf("%w: frame begins with % x, want 4b 46 or 4b 4e, and %d bytes", ErrMalformed, b[:min(len(b), 2)], headSize)
	}
	n = int(binary.LittleEndian.Uint32(b[8:]))
	if off = b[1] == 'N'; off {
		if n > maxReason {
			return 0, true, fmt.Errorf("%w: reason of %d bytes at byte 8, want at most %d", ErrMalformed, n, maxReason)
		}
		return n, true, nil
	}
	w, h := int(binary.LittleEndian.Uint16(b[2:])), int(binary.LittleEndian.Uint16(b[4:]))
	if w < 2 || w > MostWide || w%2 != 0 || h < 2 || h > MostHigh || h%2 != 0 {
		return 0, false, fmt.Errorf("%w: picture of %d by %d pixels at byte 2, want even numbers, at most %d by %d", ErrMalformed, w, h, MostWide, MostHigh)
	}
	if n != w*h*3/2 {
		return 0, false, fmt.Errorf("%w: %d bytes of a picture of %d by %d at byte 8, want %d", ErrMalformed, n, w, h, w*h*3/2)
	}
	f.Width, f.Height = w, h
	f.Exposure = time.Duration(binary.LittleEndian.Uint32(b[12:])) * time.Microsecond
	f.Seq, f.At = binary.LittleEndian.Uint64(b[16:]), time.Duration(binary.LittleEndian.Uint64(b[24:]))
	f.Gain = single(b[32:])
	f.Focal, f.Centre = [2]float64{single(b[36:]), single(b[40:])}, [2]float64{single(b[44:]), single(b[48:])}
	for _, v := range [...]float64{f.Gain, f.Focal[0], f.Focal[1], f.Centre[0], f.Centre[1]} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, false, fmt.Errorf("%w: number %v at bytes 32 to 52, want finite ones", ErrMalformed, v)
		}
	}
	return n, false, nil
}
