package vectorsim

import (
	"fmt"
	"time"

	"kennel/edge/body/vector/spine"
)

// Boot says which system the head is to start (VEC-BOOT-02). The zero value means that it is not decided.
type Boot uint8

// The kinds of boots.
const (
	BootUndecided Boot = iota
	BootNormal
	BootRecovery // the head's boot-loader finds the board's line low and prepends anki.unbrick=1 (VEC-BOOT-03)
)

// String returns "undecided", "normal" or "recovery".
func (k Boot) String() string {
	switch k {
	case BootUndecided:
		return "undecided"
	case BootNormal:
		return "normal"
	case BootRecovery:
		return "recovery"
	}
	return fmt.Sprintf("boot %d", uint8(k))
}

// How long the button must be held for each boot (VEC-BOOT-02). The source says "about 5 s"; that all segments are lit then is our own reading.
const (
	latchAfter    = 5 * time.Second
	recoveryAfter = 15 * time.Second
)

// lowFor is the longest that the board holds its line low for the head to see; own default: the
// head speaks to the board 6.7 s after its power came on (part of VEC-BOOT-09), and its first word ends it.
const lowFor = 7 * time.Second

// errReleased: the button was let go before the head held its own power.
var errReleased = fmt.Errorf("%w: the button was released before all segments were lit", ErrPowerCut)

// button is the finger at power on. The zero value is that the head holds its power already.
type button struct {
	press time.Duration // how long it is held in all; 0: not held
	held  time.Duration
	low   time.Duration // how long the line still is low
}

// hold lets time pass for the finger on the button: it decides what is started, and that the power drops if the finger leaves too early.
func (b *Board) hold(d time.Duration) error {
	f := &b.finger
	if f.low > 0 {
		if f.low -= d; b.armed {
			f.low = 0
		}
	}
	if f.press == 0 {
		return nil
	}
	f.held = min(f.held+d, f.press)
	if b.state.Boot == BootUndecided && f.held >= latchAfter {
		b.decide(BootNormal)
	}
	if b.state.Boot == BootNormal && f.held >= recoveryAfter {
		b.decide(BootRecovery)
		f.low = lowFor
	}
	if !b.armed {
		for i := range segments { // they come one after the other
			if f.held >= latchAfter*time.Duration(i+1)/segments {
				b.state.Lights[i] = spine.RGB{R: 255, G: 255, B: 255}
			}
		}
	}
	b.world.button = f.held < f.press
	if b.world.button {
		return nil
	}
	f.press = 0
	if b.state.Boot == BootUndecided {
		return errReleased
	}
	return nil
}

// segments are the lights that come on while the button is held.
const segments = 3

func (b *Board) decide(k Boot) {
	b.state.Boot = k
	if b.cfg.OnBoot != nil {
		b.cfg.OnBoot(k)
	}
}

// pressed begins a time of power: with the finger that the configuration says, once.
func (b *Board) pressed() {
	b.finger = button{press: b.cfg.Press}
	b.cfg.Press = 0
	b.state.Boot = BootUndecided
	if b.finger.press == 0 {
		b.decide(BootNormal)
	}
}
