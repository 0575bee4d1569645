package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/liveview"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/poke"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Look is the access of the page of a robot's structure tree; *liveview.Service is one.
type Look interface {
	Look(ctx context.Context, id thing.ID) (liveview.Robot, error)
}

const (
	treeEvery = time.Second     // how often the page asks again; a robot shows itself twice a second
	treeStale = 3 * time.Second // older than this it is not how the robot is
)

type robotView struct {
	thingHead
	CanStop bool
	Hand    []handButton // what a person beside a simulated robot can do
	Seen    bool
	Stale   string // how long ago it was so; "": now
	Devices []deviceView
	Parts   int // of the tree, devices or not
	Facts   []fact
	Stops   []string
	Owners  []ownerView
	Joints  []jointView  // what can be moved between two ends
	Where   string       // of a simulated robot, in words
	World   *worldView   // nil: it is not simulated
	Display template.URL // a picture of what its display shows; "": none
}

type fact struct{ Name, Text string }

// worldView is where a simulated robot is, and where it believes to be.
type worldView struct {
	Name            string
	All, Near, Side template.HTML
	Facts           []fact
	Ghost           bool // it says where it believes to be
	Sees            bool // it has something that measures distances
	Omitted         int
}

// handButton is a button for something of package poke, with its defaults.
type handButton struct {
	Label string
	Do    string // verb and side
}

var handButtons = []handButton{
	{"Touch", poke.Touch}, {"Lift", poke.Lift}, {"Put down", poke.Put}, {"Push", poke.Push}, {"Press button", poke.Press},
	{"Turn on its back", poke.Turn + " " + poke.Back},
	{"Hold wheels", poke.Hold}, {"Drain battery", poke.Drain}, {"Brown out", poke.Dip}, {"Reset", poke.Reset}, {"System mode", poke.Tools},
}

type ownerView struct{ Devices, Program string }

// jointView is a slider; its value is the measured one.
type jointView struct{ Name, Unit, Min, Max, Value string }

type deviceView struct {
	liveview.Device
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
		return "", frame{}, fmt.Errorf("live values of %s: %w", h.ID, err)
	}
	v := newRobotView(h, got)
	v.CanStop = c.Commands != nil
	f.Main, f.Live, f.Again, f.Pictures = v, "", int(treeEvery.Milliseconds()), true
	return "robot", f, nil
}

func newRobotView(h thingHead, r liveview.Robot) robotView {
	v := robotView{thingHead: h, Seen: r.Received != nil, Parts: len(r.Devices)}
	if age := time.Duration(r.AgeMS) * time.Millisecond; age > treeStale {
		v.Stale = ageText(age)
	}
	if len(r.Display) > 0 {
		v.Display = template.URL("data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(r.Display)) // letters and digits
	}
	owners := map[string]string{}
	if m := r.Motion; m != nil {
		v.Stops = m.Stop
		moves := "at rest"
		if m.Moving {
			moves = fmt.Sprintf("moves, %.2f m/s, %.0f °/s", m.Speed, m.Turning*180/math.Pi)
		}
		v.Facts = []fact{{"Moves", moves}, {"Position", fmt.Sprintf("%.3f m, %.3f m, %.1f°", m.X, m.Y, m.Theta*180/math.Pi)},
			{"Distance driven since start", fmt.Sprintf("%.2f m", m.Way)}}
		for _, p := range m.Parts {
			v.Facts = append(v.Facts, fact{"Latest motion of " + p.Name, strings.TrimPrefix(p.State+", "+p.Outcome, ", ")})
		}
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
	v.Where, v.World = r.Where(), newWorldView(r)
	for _, b := range handButtons {
		if verb, _, _ := strings.Cut(b.Do, " "); r.World != nil && slices.Contains(r.World.Verbs, verb) {
			v.Hand = append(v.Hand, b)
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
			if is, ok := x.Value.(float64); ok && d.Actuator && d.Gone == nil && (x.Name == "angle" || x.Name == "position") && x.Min != nil && x.Max != nil {
				text := func(v float64) string { return fmt.Sprintf("%.4g", v) }
				v.Joints = append(v.Joints, jointView{d.Compact, x.Unit, text(*x.Min), text(*x.Max), text(min(max(is, *x.Min), *x.Max))})
			}
		}
		v.Devices = append(v.Devices, dv)
	}
	return v
}

// newWorldView returns nil for a robot that is not simulated.
func newWorldView(r liveview.Robot) *worldView {
	w := r.World
	if w == nil || w.Map == nil {
		return nil
	}
	head, lift := number(r, "headPitch", "angle"), number(r, "arm", "position")
	v := &worldView{Name: w.Map.Name, Omitted: w.Map.Omitted, Sees: w.Map.Body.Sight > 0}
	if head != nil || lift != nil {
		v.Side = chart.Side{Head: head, Lift: lift}.HTML()
	}
	drawing := chart.World{World: *w, Title: "Simulated world of " + string(r.Thing), Text: "Simulated: " + r.Where() + "."}
	sight := "nothing in sight"
	if w.Range > 0 {
		sight = fmt.Sprintf("%.3f m", w.Range)
	}
	v.Facts = []fact{{"Actual position", placeText(w.Pose)}}
	if at, off, turned, ok := r.Belief(); ok {
		drawing.Belief, v.Ghost = &at, true
		v.Facts = append(v.Facts, fact{"Estimated position", placeText(at)}, fact{"Position error", fmt.Sprintf("%.1f cm, %.1f°", off*100, math.Abs(turned)*180/math.Pi)})
	}
	if v.Sees {
		v.Facts = append(v.Facts, fact{"Range finder", sight})
	}
	drawing.Rays = rays(r)
	if near := nearest(drawing.Rays); near != nil {
		v.Facts = append(v.Facts, fact{"Nearest echo", fmt.Sprintf("%.3f m at %.0f°", near.Range, near.Bearing*180/math.Pi)})
	}
	v.Sees = v.Sees || len(drawing.Rays) > 0
	if head != nil {
		way := "up"
		if *head > 0 {
			way = "down"
		}
		v.Facts = append(v.Facts, fact{"Head", fmt.Sprintf("%.0f° %s", math.Abs(*head)*180/math.Pi, way)})
	}
	if lift != nil {
		v.Facts = append(v.Facts, fact{"Lift", fmt.Sprintf("%.0f mm", *lift*1000)})
	}
	v.Facts = append(v.Facts, fact{"Posture", w.Posture})
	if w.Falls > 0 {
		v.Facts = append(v.Facts, fact{"Falls", fmt.Sprint(w.Falls)})
	}
	v.All, v.Near = drawing.All(), drawing.Near()
	return v
}

// rays are what the sensors measure that say where they look.
func rays(r liveview.Robot) (all []chart.Ray) {
	for _, d := range r.Devices {
		if d.Bearing == nil || d.Gone != nil {
			continue
		}
		for _, s := range d.Slots {
			if s.Name == "distance" && s.Known {
				far, _ := s.Value.(float64) // else nothing is in sight
				all = append(all, chart.Ray{Bearing: *d.Bearing, Range: far})
			}
		}
	}
	return all
}

// nearest returns the ray of the nearest thing in sight; nil if there is none.
func nearest(all []chart.Ray) (near *chart.Ray) {
	for i, ray := range all {
		if ray.Range > 0 && (near == nil || ray.Range < near.Range) {
			near = &all[i]
		}
	}
	return near
}

func placeText(p [3]float64) string { // x and y in metres, heading in radians
	return fmt.Sprintf("%.3f m, %.3f m, %.1f°", p[0], p[1], p[2]*180/math.Pi)
}

// number returns the value of a device's slot; nil if it is no number, or not known.
func number(r liveview.Robot, device, slot string) *float64 {
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			if v, ok := s.Value.(float64); ok && d.Compact == device && s.Name == slot && !math.IsNaN(v) {
				return &v
			}
		}
	}
	return nil
}

// ageText is an age that is easy to read while it changes.
func ageText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return duration(d)
}

func rangeText(s liveview.Slot) string {
	switch {
	case s.Min != nil && s.Max == nil && *s.Min > 0 && *s.Min < 1e-300: // the smallest number marks that
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
	return c.tell(ctx, "robot-stopped", command.Draft{Thing: id, Kind: commandwire.RobotStop})
}

// pokeRobot does to a simulated robot what its button says.
func (c *console) pokeRobot(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	p, err := poke.Poke{}.Named(strings.Fields(v.Get("do"))...)
	if err != nil {
		return outcome{}, errs.New(errs.Invalid, "%w", err)
	}
	args, err := json.Marshal(p)
	if err != nil {
		return outcome{}, err
	}
	return c.tell(ctx, "robot-poked", command.Draft{Thing: id, Kind: commandwire.RobotPoke, Args: args})
}

// tell gives a robot a command that begins soon or never.
func (c *console) tell(ctx context.Context, done string, d command.Draft) (outcome, error) {
	d.By = auth.CallerFrom(ctx).Subject()
	if err := d.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "command.send", string(d.Thing), d.Kind); err != nil {
		return outcome{}, err
	}
	_, err := c.Commands.Send(ctx, d)
	return outcome{done: done}, err
}
