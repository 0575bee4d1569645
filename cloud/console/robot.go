package console

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/certs/thing"
	"kennel/cloud/api/commands"
	"kennel/cloud/command"
	"kennel/cloud/look"
	"kennel/infra/kit"
)

// Look is what the page of a robot's structure tree asks; *look.Service is one.
type Look interface {
	Look(ctx context.Context, id thing.ID) (look.Robot, error)
}

const (
	treeEvery = time.Second     // how often the page asks again; a robot shows itself twice a second
	treeStale = 3 * time.Second // older than this it is not how the robot is
)

type robotView struct {
	thingHead
	CanStop bool
	Seen    bool
	Stale   string // how long ago it was so; "": now
	Devices []deviceView
	Parts   int // of the tree, devices or not
	Facts   []fact
	Stops   []string
	Owners  []ownerView
}

type fact struct{ Name, Text string }

type ownerView struct{ Devices, Program string }

type deviceView struct {
	look.Device
	Owner string // who may move it; "": anybody may ask
	Rows  []slotView
}

type slotView struct {
	Name, Value, Unit, Age, Range string
	Known                         bool
}

// robot is the page that shows a robot's structure tree as it is now.
func (c *console) robot(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	h, f, err := c.head(ctx, r, s, "robot")
	if err != nil {
		return "", frame{}, err
	}
	got, err := c.Look.Look(ctx, h.ID)
	if err != nil {
		return "", frame{}, fmt.Errorf("look at %s: %w", h.ID, err)
	}
	v := newRobotView(h, got)
	v.CanStop = c.Commands != nil
	f.Main, f.Live, f.Again = v, "", int(treeEvery.Milliseconds())
	return "robot", f, nil
}

func newRobotView(h thingHead, r look.Robot) robotView {
	v := robotView{thingHead: h, Seen: r.Received != nil, Parts: len(r.Devices)}
	if age := time.Duration(r.AgeMS) * time.Millisecond; age > treeStale {
		v.Stale = ageText(age)
	}
	owners := map[string]string{}
	if m := r.Motion; m != nil {
		v.Stops = m.Stop
		moves := "at rest"
		if m.Moving {
			moves = fmt.Sprintf("moves, %.2f m/s, %.0f °/s", m.Speed, m.Turning*180/math.Pi)
		}
		v.Facts = []fact{{"Moves", moves}, {"Where it is", fmt.Sprintf("%.3f m, %.3f m, %.1f°", m.X, m.Y, m.Theta*180/math.Pi)},
			{"Driven since its core began", fmt.Sprintf("%.2f m", m.Way)}, {"Newest drive", m.Treads}}
		at := map[string]int{}
		for _, o := range m.Owners {
			owners[o.Device] = o.Program
			i, ok := at[o.Program]
			if !ok {
				i = len(v.Owners)
				at[o.Program] = i
				v.Owners = append(v.Owners, ownerView{Program: o.Program})
			}
			v.Owners[i].Devices = strings.TrimPrefix(v.Owners[i].Devices+", "+o.Device, ", ")
		}
	}
	for _, d := range r.Devices {
		if d.Interface == "" {
			continue // it only holds others, whose names say so
		}
		dv := deviceView{Device: d, Owner: owners[d.Compact]}
		for _, x := range d.Slots {
			row := slotView{Name: x.Name, Value: x.String(), Unit: x.Unit, Known: x.Known, Range: rangeText(x)}
			if x.AgeMS != nil {
				row.Age = ageText(time.Duration(*x.AgeMS) * time.Millisecond)
			}
			dv.Rows = append(dv.Rows, row)
		}
		v.Devices = append(v.Devices, dv)
	}
	return v
}

// ageText is an age that is easy to read while it changes.
func ageText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return duration(d)
}

func rangeText(s look.Slot) string {
	switch {
	case s.Min != nil && s.Max == nil && *s.Min > 0 && *s.Min < 1e-300: // the smallest number there is stands for that
		return "above 0"
	case s.Min != nil && s.Max != nil:
		return fmt.Sprintf("%.4g to %.4g", *s.Min, *s.Max)
	case s.Min != nil:
		return fmt.Sprintf("from %.4g", *s.Min)
	case s.Max != nil:
		return fmt.Sprintf("up to %.4g", *s.Max)
	}
	return ""
}

// stopRobot brings a robot to rest. Nothing is asked before: who presses it is in a hurry.
func (c *console) stopRobot(ctx context.Context, id thing.ID, _ *http.Request, _ url.Values) (outcome, error) {
	d := command.Draft{Thing: id, Kind: commands.RobotStop, By: kit.CallerFrom(ctx).Subject()}
	if err := d.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "command.send", string(id), d.Kind); err != nil {
		return outcome{}, err
	}
	_, err := c.Commands.Send(ctx, d)
	return outcome{done: "robot-stopped"}, err
}
