package sense

import (
	"fmt"
	"time"
)

// Gesture is a person's use of the button (part of VEC-IO-02). The zero value is none.
type Gesture uint8

// The gestures.
const (
	NoGesture Gesture = iota
	Single            // acts as the wake word
	Double            // on the charger: Bluetooth pairing
	Mute              // a press of 2 to 5 s: microphone on or off
	LongHeld          // the press has become one that powers off when it ends; not told of one that ends right then
	PowerOff          // such a press ended
	Recovery          // held since power-on for 15 s
)

var gestureNames = [...]string{"none", "single", "double", "mute", "long held", "power off", "recovery"}

func (g Gesture) String() string {
	if int(g) < len(gestureNames) {
		return gestureNames[g]
	}
	return fmt.Sprintf("gesture(%d)", uint8(g))
}

// Button finds gestures in the button's contact. Durations are measured between the edges themselves; the debounce only delays when they are
// believed. A press between a click and a mute means nothing. NewButton makes one.
type Button struct {
	cfg ButtonConfig

	begun bool
	raw   bool
	edge  time.Duration // when raw changed
	down  bool          // debounced
	at    time.Duration // when down began or ended

	booted bool // the press of the moment is the one that switched the robot on
	told   bool // of a press that became long, or recovery
	single bool // a click waits for its second
	freed  time.Duration
}

// NewButton returns a filter whose first step decides whether the button is held since power-on. cfg must be valid.
func NewButton(cfg ButtonConfig) Button { return Button{cfg: cfg} }

// Pressed is the debounced contact (VEC-IO-01).
func (b *Button) Pressed() bool { return b.down }

// Step takes in the contact at the time now. It reports at most one gesture; a second one of the same step comes with the next.
func (b *Button) Step(now time.Duration, pressed, onCharger bool) Gesture {
	if !b.begun {
		b.begun, b.raw, b.down, b.booted, b.edge, b.at = true, pressed, pressed, pressed, now, now
		return NoGesture
	}
	if pressed != b.raw {
		b.raw, b.edge = pressed, now
	}
	if b.raw != b.down && now-b.edge >= b.cfg.Debounce {
		lasted := b.edge - b.at
		b.down, b.at = b.raw, b.edge
		if !b.down {
			return b.released(lasted, onCharger)
		}
		b.booted, b.told = false, false
		return NoGesture
	}
	if b.down {
		return b.holding(now)
	}
	// The window stays open while a press that began in it is not believed yet.
	if inTime := b.raw && b.edge-b.freed < b.cfg.DoubleGap; b.single && !inTime && now-b.freed >= b.cfg.DoubleGap {
		b.single = false
		return Single
	}
	return NoGesture
}

func (b *Button) released(lasted time.Duration, onCharger bool) Gesture {
	waiting := b.single
	second := waiting && b.at-lasted-b.freed < b.cfg.DoubleGap
	b.single = false
	switch {
	case b.booted:
		return NoGesture // it switched the robot on, or told of recovery already
	case lasted >= b.cfg.Long:
		return PowerOff
	case lasted >= b.cfg.Mute:
		return Mute
	case lasted >= b.cfg.Click && waiting: // no step fell between
		return Single
	case lasted >= b.cfg.Click:
		return NoGesture
	case second:
		return Double
	case onCharger:
		b.single, b.freed = true, b.at // VEC-IO-03: wait for a second one
		return NoGesture
	}
	return Single
}

func (b *Button) holding(now time.Duration) Gesture {
	switch lasted := now - b.at; {
	case b.raw != b.down: // may be over: the release decides
		return NoGesture
	case b.single && lasted >= b.cfg.Click: // this one is no second click, so the first was one of its own
		b.single = false
		return Single
	case b.booted && !b.told && lasted >= b.cfg.Recovery:
		b.told = true
		return Recovery
	case !b.booted && !b.told && lasted >= b.cfg.Long:
		b.told = true
		return LongHeld
	}
	return NoGesture
}
