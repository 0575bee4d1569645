package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/liveview"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/vitals"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/live"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// papers are the documents of rex: the settings in three versions, of which the robot has the second; and its statistics.
type papers struct{ *desk }

var settingsHistory = []jdocs.Revision{
	{Doc: jdocs.Doc{Version: 3, JSON: `{"master_volume":5,"eye_color":0,"odd":"` + "</code><script>" + `","time_zone":"Europe/Paris","custom_eye_color":{"enabled":false,"hue":0.42}}`}, By: evil, At: noon.Add(-time.Hour)},
	{Doc: jdocs.Doc{Version: 2, JSON: `{"master_volume":1,"eye_color":0,"time_zone":"Europe/Paris","custom_eye_color":{"enabled":false,"hue":0.42}}`}, By: "vic:00e20100", At: noon.Add(-2 * time.Hour)},
	{Doc: jdocs.Doc{Version: 1, JSON: `{"master_volume":4,"eye_color":0,"time_zone":"Europe/Paris","custom_eye_color":{"enabled":false,"hue":0.42}}`}, By: "vic:00e20100", At: noon.Add(-30 * time.Hour)},
}

func (papers) List(context.Context, thing.ID) ([]jdocs.Listing, error) {
	return []jdocs.Listing{{Name: jdocs.RobotLifetimeStats, Version: 7, By: "vic:00e20100", At: noon}, {Name: jdocs.RobotSettings, Version: 3, By: evil, At: noon}}, nil
}

func (p papers) Get(_ context.Context, key jdocs.Key) (jdocs.Revision, error) {
	switch key.Name {
	case jdocs.RobotSettings:
		return settingsHistory[0], nil
	case jdocs.RobotLifetimeStats:
		return jdocs.Revision{Doc: jdocs.Doc{Version: 7, JSON: `{"Alive.seconds":12}`}, At: noon}, nil
	}
	return jdocs.Revision{}, errs.New(errs.NotFound, "no document %s", key.Name)
}

func (papers) Revision(_ context.Context, _ jdocs.Key, version uint64) (jdocs.Revision, error) {
	for _, r := range settingsHistory {
		if r.Version == version {
			return r, nil
		}
	}
	return jdocs.Revision{}, jdocs.ErrNotFound
}

func (papers) History(context.Context, jdocs.Key, int) ([]jdocs.Revision, error) {
	return settingsHistory, nil
}

func (p papers) Set(_ context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (jdocs.Revision, error) {
	text, _ := json.Marshal(fields)
	return jdocs.Revision{}, p.do("set", key.Thing, key.Name, string(text), by)
}

// outbox has one command of each end.
type outbox struct{ *desk }

func (outbox) Commands(context.Context, thing.ID, bool, int) ([]command.Command, error) {
	closed := noon.Add(-time.Minute)
	return []command.Command{{ID: "c-1", Kind: commandwire.Ping, By: evil, Created: noon.Add(-time.Hour), Expires: noon, State: command.Failed, Closed: &closed, Result: &command.Result{Detail: evil}},
		{ID: "c-2", Kind: evil, By: "op", Created: noon.Add(-2 * time.Hour), State: command.Expired, Closed: &closed}, {ID: "c-3", Kind: commandwire.Sync, Created: noon.Add(-time.Minute), Expires: noon, State: command.Sent, Sends: 2}}, nil
}

func (o outbox) Send(_ context.Context, d command.Draft) (command.Command, error) {
	return command.Command{}, o.do("send", d.Thing, d.Kind, string(d.Args), d.TTL, d.By)
}

// diary holds rex's events: the last is an error, the others are many.
type diary struct{}

func record(i int) das.Record {
	r := das.Record{Thing: rex, Received: noon.Add(-time.Duration(i) * time.Minute), Event: events.Event{Name: "battery.periodic_log", BootID: "b", Seq: uint64(10_000 - i), Level: events.Info, S1: "nominal", I1: events.Int{N: int64(i), Set: true}}}
	if i == 0 {
		r.Level, r.Name, r.S1 = events.Error, evil, evil
	}
	return r
}

func (diary) List(_ context.Context, f das.Filter, limit int, before das.Cursor) ([]das.Record, error) {
	var out []das.Record
	if f.Names != nil { // one of each, and what came of a download
		for i, name := range []string{"robot.ota_download_end", "robot.ota_download_start", "robot.crash", "robot.fault_code"} {
			r := record(i + 1)
			r.Name, r.S1, r.S2, r.I1 = name, "vic-engine", evil, events.Int{}
			out = append(out, r)
		}
		return out, nil
	}
	for i := range 700 {
		r := record(i)
		if c := r.Cursor(); len(out) < limit && (before.Received.IsZero() || c.Received.Before(before.Received)) && !r.Received.Before(f.Since) {
			out = append(out, r)
		}
	}
	return out, nil
}

// Counts tells of three hours, and refuses a question about the program "slow".
func (diary) Counts(_ context.Context, q das.CountsQuery) (das.Counts, error) {
	if q.Filter.Source == "slow" {
		return das.Counts{}, errs.Coded(errs.Exhausted, "too_long", "the database did not find this within 8s: choose a shorter time")
	}
	c := das.Counts{Since: q.Filter.Since, Until: q.Filter.Until, By: q.By, Of: q.Of, Total: das.Count{Events: 61, Robots: 2, Misfits: 1}}
	for i := range 3 {
		g := das.Count{Key: noon.Add(time.Duration(i-3) * time.Hour).Format(time.RFC3339), Events: 20, Robots: 2}
		if !q.By.Time() {
			g.Key = evil
		}
		if q.Of != "" {
			g.Numbers = &das.Numbers{Count: 20, Min: 1, Max: 9, Mean: 5, P50: 5, P90: 8, P99: 9}
		}
		c.Groups = append(c.Groups, g)
	}
	c.Total.Numbers = c.Groups[0].Numbers
	return c, nil
}

func (diary) Experiments(context.Context, time.Time) ([]das.Experiment, error) {
	return []das.Experiment{{Key: evil, Files: []string{"2.1"}, Last: noon, Variations: []das.Variation{{Variation: "control", Robots: 30}, {Variation: "treatment", Robots: 28}}}}, nil
}

func (diary) Compare(_ context.Context, q das.CompareQuery) (das.Comparison, error) {
	return das.Comparison{Key: q.Key, Name: q.Name, Of: q.Of, Since: noon, Until: noon, Control: "control", Changed: 1, Arms: []das.Arm{{Variation: "control", Robots: 30, Days: 200, Events: 20, Mean: 0.1},
		{Variation: "treatment", Robots: 28, Days: 190, Events: 95, Mean: 0.5}}, Differences: []das.Difference{{Variation: "treatment", By: 0.4, Low: 0.25, High: 0.55, Clear: true}}}, nil
}

func (diary) Losses(context.Context, thing.ID, time.Time, time.Time) ([]das.Loss, error) {
	return []das.Loss{{BootID: "b-1", First: 7, Last: 16, From: noon.Add(-40 * time.Minute), To: noon.Add(-30 * time.Minute)}}, nil
}

func (diary) Tail(ctx context.Context, _ das.Filter, fn func(das.Record) error) error {
	for i := range 200 {
		if err := fn(record(i)); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func curves(_ context.Context, id thing.ID, g vitals.Grain, from, to time.Time) ([]vitals.Sample, error) {
	var out []vitals.Sample
	for at := from.Truncate(g.Every); at.Before(to); at = at.Add(g.Every) {
		volts, late := 3.6+float64(at.Minute())/100, 100.0
		out = append(out, vitals.Sample{Thing: id, At: at, Volts: &volts, Low: &volts, LateP99: &late})
	}
	return out, nil
}

// glass shows rex with one part of every kind of value; any other robot has shown nothing.
type glass struct{}

func (glass) Look(_ context.Context, id thing.ID) (liveview.Robot, error) {
	r := liveview.Robot{Thing: id, Devices: []liveview.Device{}}
	if id != rex {
		return r, nil
	}
	received, age, low, high := noon, int64(130), -0.785, 0.384
	r.Received, r.AgeMS, r.Body = &received, 120, "vector"
	r.Devices = []liveview.Device{{Full: "robot", Compact: "robot", Kind: "device", Interface: "Identity", Slots: []liveview.Slot{{Name: "name", Type: "string", Known: true, Value: evil, AgeMS: &age}}},
		{Full: "robot.body", Kind: "component"},
		{Full: "robot.body.head.pitch", Compact: "headPitch", Kind: "device", Interface: "RotationalMotor", Actuator: true,
			Slots: []liveview.Slot{{Name: "angle", Type: "float", Unit: "rad", Min: &low, Max: &high, Known: true, Value: 0.25, AgeMS: &age}, {Name: "torque", Type: "float", Unit: evil}}}}
	r.World, r.Display = room(evil), []byte{0xff, 0xd8, 0xff}
	r.Motion = &live.Motion{X: 0.1, Theta: 1.5, Speed: 0.05, Moving: true, Way: 12.3, Parts: []live.Part{{Name: "wheels", Outcome: "running"}}, Stop: []string{evil}, Owners: []live.Owner{{Device: "headPitch", Program: evil, Priority: 50}}}
	return r, nil
}

// room is a world whose robot names everything in it so.
func room(name string) *live.World {
	return &live.World{Rev: name, Posture: name, Pose: live.Place{0.2, -0.1, 1.6}, Origin: live.Place{0.1, -0.2, 0}, Range: 0.42, Falls: 3, Things: []live.Thing{{At: live.Place{0.4, 0.3, 0.5}}, {Gone: true}},
		NoFloor: []bool{true}, Verbs: []string{"touch", "turn", name}, Trail: []live.Point{{0, 0}, {0.1, 0}, {0.2, -0.05}, {0.2, -0.1}},
		Map: &live.Map{Name: name, Walls: []live.Wall{{From: live.Point{-1, -1}, To: live.Point{1, -1}}}, Cliffs: [][]live.Point{{{1, 1}, {2, 1}, {2, 2}}}, Omitted: 5,
			Body: live.Body{Nose: 0.045, Tail: 0.055, Width: 0.06, Sight: 1.2, Cliffs: []live.Point{{0.03, 0.02}}}, Shapes: []live.Shape{{Name: name, Radius: 0.05}, {Name: name, Size: &live.Point{0.1, 0.1}}}}}
}

// shelf holds saved filters.
type shelf struct{ *desk }

func (shelf) List(context.Context) ([]cohort.Cohort, error) {
	return []cohort.Cohort{{Name: "beta", Filter: filter.MustParse("tag:beta"), Note: evil, By: evil, Changed: noon}, {Name: "old", Filter: filter.MustParse("version:<2.1"), Changed: noon}}, nil
}

func (s shelf) Put(_ context.Context, c cohort.Cohort, by string, rev int64) (cohort.Cohort, error) {
	return c, s.do("put cohort", c.Name, c.Filter.String(), c.Note, by, rev)
}
func (s shelf) Delete(_ context.Context, name string) error { return s.do("delete cohort", name) }

// heap holds one job.
type heap struct{ *desk }

var job = bulk.Job{ID: "j-1", Text: "add tag " + evil, Filter: "presence:present", By: evil, Created: noon, State: bulk.Running, Total: 3, Open: 1, Done: 1, Failed: 1}

func (h heap) Preview(_ context.Context, d bulk.Draft) (bulk.Preview, error) {
	p := bulk.Preview{Count: max(len(d.Things), 1), Text: d.Action.String()}
	if d.Filter != nil {
		p.Filter = d.Filter.String()
	}
	return p, h.err
}

func (h heap) Start(_ context.Context, d bulk.Draft) (bulk.Job, error) {
	text, _ := json.Marshal(d.Action)
	return job, h.do("start", string(text), len(d.Things), *d.Expect, d.By)
}
func (heap) Job(_ context.Context, id string) (bulk.Job, error) {
	if id != job.ID {
		return bulk.Job{}, errs.New(errs.NotFound, "no job %s", id)
	}
	return job, nil
}
func (heap) Jobs(context.Context, int) ([]bulk.Job, error) { return []bulk.Job{job}, nil }
func (heap) Results(context.Context, string, bulk.ItemState, thing.ID, int) ([]bulk.Result, error) {
	return []bulk.Result{{Thing: rex, State: bulk.ItemFailed, Detail: evil, At: &job.Created}}, nil
}
func (h heap) Cancel(_ context.Context, id string) (bulk.Job, error) { return job, h.do("cancel", id) }

// TestFieldsOfSpecies: labels, words and what bulk changes offer come from the schemas, one that is added too.
func TestFieldsOfSpecies(t *testing.T) {
	defer func(was []jdocs.Schema) { jdocs.Schemas = was }(jdocs.Schemas)
	others := slices.DeleteFunc(slices.Clone(jdocs.Schemas), func(s jdocs.Schema) bool { return s.Species == thing.Pleo })
	jdocs.Schemas = append(others, jdocs.Schema{Name: "pleo.RobotSettings", Species: thing.Pleo, Begins: true, Formats: []jdocs.Format{{Version: 1}},
		Fields: []jdocs.Field{{Name: "glow", Type: "enum", Values: []string{"DARK_RED", "BLUE"}, Label: "Glow", Help: "Its skin."}}})
	for doc, want := range map[jdocs.Name]string{
		jdocs.RobotSettings:   "{Volume How loud it speaks. [mute low medium low medium medium high high] [] false} {Eye colour One of seven. [tip over teal",
		"amigo.RobotSettings": "{Volume How loud it speaks. [mute low medium low medium medium high high] [] false} {  [] [] false} {  [] [] false}",
		"pleo.RobotSettings":  "{  [] [] false} {  [] [] false} {Glow Its skin. [dark red blue] [] false}",
	} {
		if got := fmt.Sprint(fieldOf(doc, "master_volume"), " ", fieldOf(doc, "eye_color"), " ", fieldOf(doc, "glow")); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
	}
	mux, _ := openDesk(t)
	body := do(t, mux, auth.Admin, "GET", "/bulk/new?do=set&which=all&filter=presence:present", "").Body.String()
	for _, want := range []string{`<option value="glow"`, `<option value="eye_color"`, `<option value="master_volume"`} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%s is in it %d times: %s", want, strings.Count(body, want), body)
		}
	}
}
