package robotapp

import (
	"errors"
	"testing"

	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/sim/plane"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// TestGoHome: a robot that was on its charger and drove away finds back for a person, without any program (part of VEC-OBJ-02); one that
// was never there says so, and does not move.
func TestGoHome(t *testing.T) {
	r := newSDKRobot(t)
	link := corelink.NewClient(r.dir, corelink.WithHello(corelink.Hello{Program: "agentd"}))
	own := coreclient.New(link)
	go func() { _ = link.Run(t.Context(), own.Handle) }()
	if err := own.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	home := func() (known, there bool) {
		testwait.Until(t, patience, "the motors are free", func() (err error) {
			known, err = r.facade.GoHome(t.Context(), own)
			return err
		})
		if err := r.in(func(w *plane.World) error { there = w.Contact(); return nil }); err != nil {
			t.Fatal(err)
		}
		return known, there
	}
	if known, _ := home(); known {
		t.Error("it says that it knows where its charger is, and was never there")
	}
	r.undisturbed(t, func() string { // from the charger each time, wherever a late loop left it
		if err := r.in(func(w *plane.World) error { return w.PutOnCharger() }); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, 4*patience, "the way home is known", func() error {
			if known, there := home(); !known || !there { // it is there, and has nothing to do
				return errors.New("not yet")
			}
			return nil
		})
		p, err := r.start(t, "someone")
		if err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, 4*patience, "away from the charger", func() error { // a call that a late loop stops is made again
			if at := poseIn(t, r.in); at[0] > -0.75 {
				return nil
			}
			_, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 100, RightWheelMmps: 100})
			return errors.Join(err, errors.New("near the charger"))
		})
		p.end()
		if known, there := home(); !known || !there {
			return "not on the charger"
		}
		return ""
	})
}
