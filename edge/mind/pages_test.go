package mind_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

// shows waits until the display shows a picture that is fits.
func (d *desk) shows(t *testing.T, what string, is func(*face.Picture) bool) {
	t.Helper()
	seen := errors.New("seen")
	testwait.Until(t, 2*patience, what, func() error {
		err := d.Watch(d.ctx, mindlink.MaxRate, func(f mindlink.Frame) error {
			if !is(f.Picture) {
				return fmt.Errorf("frame %d is another picture", f.Seq)
			}
			return seen
		})
		if errors.Is(err, seen) {
			return nil
		}
		return err
	})
}

// looks is the picture of a page at some time of its own.
func looks(s screen.Screen, times ...time.Duration) func(*face.Picture) bool {
	return func(p *face.Picture) bool {
		for _, at := range append(times, 0) {
			if *p == *screen.Picture(s, at) {
				return true
			}
		}
		return false
	}
}

// eyes reports whether a picture has no pixel as white as letters are.
func eyes(p *face.Picture) bool {
	for _, v := range p.Pix {
		if v == 0xffff {
			return false
		}
	}
	return true
}

// TestPages: a page is shown for its time or until its program takes it away, below the face of a clip and a picture; no page is a fault's (VEC-DGN-03).
func TestPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	rain := &screen.Weather{Condition: "Rain", Temperature: "7", Unit: "C", Place: "Graz"}
	if err := d.Page(d.ctx, mindlink.Page{Weather: rain, ForMS: 120_000, Program: "a"}); err != nil {
		t.Fatal(err)
	}
	d.shows(t, "the weather", looks(*rain))
	playing, stop := context.WithCancel(d.ctx)
	began, ended := d.play(t, playing, mindlink.Request{Clip: "anim_smile", Level: mindlink.Behavior, Program: "b"})
	if began.Clip != "anim_smile" {
		t.Errorf("%+v", began)
	}
	d.shows(t, "the clip's face", eyes)
	stop()
	<-ended
	d.shows(t, "the weather again", looks(*rain))
	if err := d.Page(d.ctx, mindlink.Page{Program: "b"}); err != nil { // it has none
		t.Error(err)
	}
	d.shows(t, "the weather still", looks(*rain))
	timer := screen.Timer{Left: time.Hour, Of: time.Hour}
	if err := d.Page(d.ctx, mindlink.Page{Timer: &timer, ForMS: 120_000, Program: "b"}); err != nil {
		t.Error(err)
	}
	d.shows(t, "a timer that counts", func(p *face.Picture) bool {
		for s := time.Second; s < time.Minute; s += time.Second {
			if *p == *screen.Picture(screen.Timer{Left: timer.Left - s, Of: timer.Of}, 0) {
				return true
			}
		}
		return looks(timer)(p)
	})
	if err := d.Page(d.ctx, mindlink.Page{Program: "b"}); err != nil {
		t.Error(err)
	}
	d.shows(t, "the eyes", eyes)
	clock := &screen.Clock{Hour: 7, Minute: 5}
	if err := d.Page(d.ctx, mindlink.Page{Clock: clock, ForMS: 1, Program: "a"}); err != nil {
		t.Error(err)
	}
	d.shows(t, "the eyes after a millisecond", eyes)
	for i, bad := range []mindlink.Page{{Clock: clock}, {Clock: clock, ForMS: -1}, {Clock: clock, ForMS: 1 << 40}, {Clock: clock, Weather: rain, ForMS: 10}} {
		if err := d.Page(d.ctx, bad); errs.CodeOf(err) != "invalid" {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := newDesk(t).Page(d.ctx, mindlink.Page{Clock: clock, ForMS: 10}); errs.CodeOf(err) != "unable" {
		t.Errorf("without a display: %v", err)
	}
}

// TestCare: on the charger, a double press and the lift moved up and down by hand bring up customer care with live values; a press shows the next page, and a double press
// ends it. Neither the press alone nor the lift alone does, and no robot away from its charger (VEC-DGN-02, VEC-MCT-09, part of VEC-DGN-01).
func TestCare(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display, robot.Part{Path: "body.arm.z", Is: []string{"LinearMotor"}})
	press := func(gesture string) {
		e := control.Event{Name: "robot.button", Quiet: true}
		e.Texts[0] = gesture
		d.body.Emit(e)
	}
	lift := func(m float64) { d.body.Measure("armZ.position", m) }
	robotPage := func(p *face.Picture) bool {
		s := screen.Care{Title: "Robot", Page: 1, Pages: 3}
		s.Rows = [screen.CareRows]screen.CareRow{{Name: "ESN", Value: "-"}, {Name: "IP", Value: "-"}, {Name: "Name", Value: "-"}, {Name: "Model", Value: "-"}, {Name: "Battery", Value: "3.9 V"}, {Name: "Temperature", Value: "31 °C"}}
		return looks(s)(p)
	}
	motors := func(height string) func(*face.Picture) bool {
		s := screen.Care{Title: "Motors", Page: 2, Pages: 3, Rows: [screen.CareRows]screen.CareRow{{Name: "Head", Value: "0 °"}, {Name: "Lift", Value: height},
			{Name: "Left tread", Value: "-"}, {Name: "Right tread", Value: "-"}}}
		return looks(s)
	}
	lift(0.032)
	press("double") // away from the charger
	lift(0.08)
	lift(0.032)
	d.shows(t, "the eyes", eyes)
	d.body.SetReport(func(r *control.Report) { r.Volts = 5 })
	// Until the mind has heard of the charger, a press means nothing: it is repeated, and each time the lift goes up and down.
	stop := make(chan struct{})
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for up := true; ; up = !up {
			if up {
				lift(0.08)
			} else {
				lift(0.032)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	d.shows(t, "the eyes, while the lift alone moves", eyes)
	testwait.Until(t, 2*patience, "customer care", func() error {
		press("double")
		seen := errors.New("seen")
		n := 0
		err := d.Watch(d.ctx, 10, func(f mindlink.Frame) error {
			if robotPage(f.Picture) {
				return seen
			}
			if n++; n == 300 {
				return errors.New("no page of customer care")
			}
			return nil
		})
		if errors.Is(err, seen) {
			return nil
		}
		return err
	})
	close(stop)
	<-moved
	lift(0.05)
	press("single")
	d.shows(t, "the motors", motors("50 mm"))
	lift(0.06)
	d.shows(t, "the lift, live", motors("60 mm"))
	press("double")
	d.shows(t, "the eyes again", eyes)
}
