package companion

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandapi"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/liveview"
	"kennel/cloud/fleet/liveview/liveviewapi"
	"kennel/cloud/fleet/motion"
	"kennel/cloud/fleet/motion/motionapi"
	"kennel/cloud/fleet/motion/motionpg"
	"kennel/cloud/identity/owner"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/live"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/motionwire/skeleton"
	"kennel/infra/auth"
	"kennel/infra/browser"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// dog is a robot of ann's with a head that turns and legs of two joints.
const (
	dog  = thing.ID("aibo:00e20100")
	head = "robot.body.head.yaw"
	sign = "TOY1" // begins its motion files
)

// dogBody returns the body that it tells.
func dogBody() motionwire.Body {
	b := motionwire.Body{V: 1, Model: "toy <dog>", Ending: "toy", Joints: []motionwire.Joint{{Name: head, Slot: head + ".angle", Min: -1_000_000, Max: 1_000_000, Speed: 3_000_000}},
		Links:   []motionwire.Link{{Joint: head, Parent: -1, At: skeleton.Vec{0.09, 0, 0.04}, Axis: skeleton.Vec{0, 0, 1}}},
		Bones:   []motionwire.Bone{{Link: -1, From: skeleton.Vec{-0.08, 0, 0}, To: skeleton.Vec{0.08, 0, 0}, Wide: 0.07}, {Link: 0, To: skeleton.Vec{0.07, 0, 0.01}, Wide: 0.05}},
		Motions: []motionwire.Sequence{{Name: "nod", SpanMS: 800, Joints: []string{head}, Keyframes: []motionwire.Keyframe{{Values: []int32{0}}, {AtMS: 400, Values: []int32{300_000}}, {AtMS: 800, Values: []int32{0}}}}}}
	for i, leg := range []string{"[front][left]", "[front][right]", "[back][left]", "[back][right]"} {
		at := skeleton.Vec{0.06, 0.05, 0}
		if i > 1 {
			at[0] = -at[0]
		}
		if i%2 > 0 {
			at[1] = -at[1]
		}
		for _, part := range []string{"hip", "knee"} {
			name := "robot.body.leg" + leg + "." + part + ".pitch"
			parent := -1
			if part == "knee" {
				parent, at = len(b.Links)-1, skeleton.Vec{0, 0, -0.07}
			}
			b.Joints = append(b.Joints, motionwire.Joint{Name: name, Slot: name + ".angle", Min: -2_000_000, Max: 2_000_000})
			b.Links = append(b.Links, motionwire.Link{Joint: name, Parent: parent, At: at, Axis: skeleton.Vec{0, 1, 0}})
			b.Bones = append(b.Bones, motionwire.Bone{Link: len(b.Links) - 1, To: skeleton.Vec{0, 0, -0.07}, Wide: 0.02})
		}
	}
	return b
}

// kennelDog is the robot: it fetches and judges motions, plays them at once, and shows its joints to people who look.
type kennelDog struct {
	t      *testing.T
	body   motionwire.Body
	asks   map[string]kitmqtt.ReqHandler
	outbox *command.Service
	wake   chan struct{} // one slot

	mu     sync.Mutex
	angles map[string]float64
	did    []string
}

// ask makes one request of the robot's, and reads the answer into out, which may be nil.
func (d *kennelDog) ask(method string, req, out any) {
	b, err := json.Marshal(req)
	if err == nil {
		b, err = d.asks[motionwire.Service+"/"+method](d.t.Context(), dog, b)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil && d.t.Context().Err() == nil {
		d.t.Errorf("the robot's %s: %v", method, err)
	}
}

// run does what the robot is told until wake is closed.
func (d *kennelDog) run() {
	for range d.wake {
		b, err := json.Marshal(d.body)
		if err != nil {
			d.t.Error(err)
		}
		var want motionwire.Want
		d.ask(motionwire.SyncMethod, motionwire.Have{V: 1, Body: motionwire.Sum(b)}, &want)
		for _, m := range want.Motions {
			if m.Judge {
				var f motionwire.File
				d.ask(motionwire.FileMethod, m.Ref, &f)
				d.ask(motionwire.VerdictMethod, verdict(m.Ref, f.File), nil)
			}
		}
		told, err := d.outbox.Pull(d.t.Context(), dog)
		if err != nil && d.t.Context().Err() == nil {
			d.t.Error(err)
		}
		for _, c := range told {
			r := commandwire.Result{V: 1, ID: c.ID, Status: commandwire.Done, Finished: time.Now().UnixMilli(), Detail: "all motors stop"}
			d.mu.Lock()
			if c.Kind == commandwire.Play {
				r.Detail = "motion/nod done in 800ms"
				d.angles[head] = 0.4
			}
			d.did = append(d.did, c.Kind+" "+string(c.Args))
			d.mu.Unlock()
			if _, err := d.outbox.Finish(d.t.Context(), dog, r); err != nil && d.t.Context().Err() == nil {
				d.t.Error(err)
			}
		}
	}
}

// verdict judges a motion of a page by the range of the head, and refuses everything else.
func verdict(ref motionwire.Ref, file []byte) motionwire.Verdict {
	v := motionwire.Verdict{V: 1, Ref: ref}
	e, err := motionwire.ParseEdited(file)
	if err != nil {
		v.Why = "it is no motion"
		v.Findings = []motionwire.Finding{{Severity: "error", Code: "signature", Offset: 4, What: "signature", Expected: sign, Found: string(file[:4])}}
		return v
	}
	e.Sequence.Name = ref.Name
	v.Kept, v.Motion, v.File = true, &e.Sequence, append([]byte(sign), file...)
	return v
}

// The liveview.Store of the robot: it always says how its joints are.
func (d *kennelDog) Ask(context.Context, thing.ID, time.Duration) (bool, error) { return false, nil }
func (d *kennelDog) Put(context.Context, thing.ID, live.Frame) error            { return nil }
func (d *kennelDog) Forget(context.Context, time.Duration) error                { return nil }
func (d *kennelDog) Newest(context.Context, thing.ID) (liveview.Frame, error) {
	f := liveview.Frame{At: time.Now(), Tree: &live.Tree{Body: "toy"}}
	for i, j := range d.body.Joints {
		v := d.angle(j.Name)
		f.Tree.Nodes = append(f.Tree.Nodes, live.Node{Full: j.Name, Kind: "device", Slots: []live.Slot{{ID: i, Name: "angle", Type: "number"}}})
		f.Frame.Values = append(f.Frame.Values, live.Value{Slot: i, Number: &v})
	}
	return f, nil
}

func (d *kennelDog) angle(joint string) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.angles[joint]
}

// kennelOf serves ann's pages with the dog among her robots.
func kennelOf(t *testing.T) (*kennelDog, string) {
	pool := pgtest.New(t)
	d := &kennelDog{t: t, body: dogBody(), outbox: command.New(commandpg.New(pool)), wake: make(chan struct{}, 1), angles: map[string]float64{"robot.body.leg[front][left].hip.pitch": -0.5, "robot.body.leg[back][right].knee.pitch": 0.3}}
	nudge := func() {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
	svc := motion.New(motion.Config{Store: motionpg.New(pool), Commands: d.outbox, Log: slog.New(slog.DiscardHandler),
		Since: func(context.Context, thing.ID) (time.Time, error) { return time.Time{}, nil },
		Send:  func(context.Context, thing.ID, string, []byte) error { nudge(); return nil }})
	d.asks = motionapi.Handlers(svc)
	d.ask(motionwire.BodyMethod, d.body, nil)
	mux, h := open(t, func(c *Config) { c.Motions = svc })
	h.also = []owner.Tenure{{Thing: dog, Account: "ann", Since: noon, Name: "Dog"}}
	known := func(_ context.Context, id thing.ID) error {
		if id != dog {
			return errors.New("another robot")
		}
		return nil
	}
	doors := op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return time.Now().Add(-time.Hour), account == "ann" && id == dog, nil
	}}
	motionapi.Operations(svc, motionapi.Config{Known: known, Audit: h.audit}).Mount(mux, doors)
	commandapi.Operations(d.outbox, commandapi.Config{Known: known, Audit: h.audit}).Mount(mux, doors)
	liveviewapi.Operations(liveview.New(d, nil, nil, doors.Log), known).Mount(mux, doors)
	mux.Handle("/assets/", http.FileServer(http.Dir("../console"))) // which serves the part's script
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: "ann", Name: "ann@example.org"})))
		if r.Method == http.MethodPost {
			nudge()
		}
	}))
	ended := make(chan struct{})
	go func() { defer close(ended); d.run() }()
	t.Cleanup(func() { server.Close(); close(d.wake); <-ended })
	return d, server.URL
}

// drawn waits until a view of the page shows the robot as it is, to a tenth of a millimetre.
func (d *kennelDog) drawn(t *testing.T, p *browser.Page, view skeleton.View) {
	t.Helper()
	across := 0
	if view == skeleton.Front {
		across = 1
	}
	compare := func(a, b [4]float64) int { return slices.Compare(a[:], b[:]) }
	testwait.Until(t, browser.Patience, "the robot from the "+skeleton.Views[view], func() error {
		d.mu.Lock()
		all := skeleton.Rest(skeleton.Pose(&d.body, d.angles))
		d.mu.Unlock()
		var got, want [][4]float64
		for _, s := range all {
			want = append(want, [4]float64{s.From[across] * 1000, 60 - s.From[2]*1000, s.To[across] * 1000, 60 - s.To[2]*1000})
		}
		err := json.Unmarshal(p.Eval(`[...document.querySelectorAll('[data-view="`+skeleton.Views[view]+`"] line:not(.floor)')].map((l) => ["x1", "y1", "x2", "y2"].map((a) => Number(l.getAttribute(a))))`), &got)
		if err != nil || len(got) != len(want) {
			return fmt.Errorf("%d bones, want %d, %w", len(got), len(want), err)
		}
		for i := range want {
			if !slices.ContainsFunc(got, func(l [4]float64) bool {
				for c := range l {
					if math.Abs(l[c]-want[i][c]) > 0.11 {
						return false
					}
				}
				return true
			}) {
				slices.SortFunc(got, compare)
				return fmt.Errorf("no bone is at %v: %v", want[i], got)
			}
		}
		return nil
	})
}

// edited is the page's chosen keyframe: the value of the only joint, and the text of the list.
func edited(t *testing.T, p *browser.Page) (value int, at string) {
	t.Helper()
	if err := json.Unmarshal(p.Eval(`Number(document.querySelector("[data-rows] input").value)`), &value); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(p.Eval(`document.querySelector("[data-keyframe]").selectedOptions[0].text`), &at); err != nil {
		t.Fatal(err)
	}
	return value, at
}

// dot returns where a keyframe of the only joint is in the window, having moved the page there.
func dot(t *testing.T, p *browser.Page, keyframe int) (at [2]float64) {
	t.Helper()
	script := `(() => { const d = document.querySelector('[data-rows] [data-k="` + strconv.Itoa(keyframe) + `"]'); d.scrollIntoView({ block: "center" }); const r = d.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`
	if err := json.Unmarshal(p.Eval(script), &at); err != nil {
		t.Fatal(err)
	}
	return at
}

var number = regexp.MustCompile(`-?[0-9]+\.[0-9]+`)

// alike checks that two documents differ in nothing but the last digit of numbers, by at most within.
func alike(t *testing.T, what, got, want string, within float64) {
	t.Helper()
	a, b := number.FindAllString(got, -1), number.FindAllString(want, -1)
	if x, y := number.ReplaceAllString(got, "0"), number.ReplaceAllString(want, "0"); x != y || len(a) == 0 {
		t.Errorf("%s of the page:\n%s\nof robotkit:\n%s", what, got, want)
		return
	}
	for i := range a {
		x, err1 := strconv.ParseFloat(a[i], 64)
		y, err2 := strconv.ParseFloat(b[i], 64)
		if err := cmp.Or(err1, err2); err != nil || math.Abs(x-y) > within {
			t.Errorf("%s: number %d is %s, want %s", what, i, a[i], b[i])
		}
	}
}

// TestMotionsPage: an owner sees the robot live, drags a keyframe, takes that back, edits by keys, previews, plays, saves, downloads and deletes a motion, and is
// told why another is refused. Drawing and URDF are those of the package skeleton. The page is sound at six sizes (issue 35, item 6).
func TestMotionsPage(t *testing.T) {
	d, server := kennelOf(t)
	p := browser.Start(t).Page(t, browser.Desktop)
	p.Goto(server + "/my/robots/" + string(dog) + "/motions")
	d.drawn(t, p, skeleton.Side)
	p.SeeIn("region", "Motions", "nod")

	t.Run("edit", func(t *testing.T) { edits(t, p.For(t)) })

	p.ClickIn("region", "Posture", "button", "Preview")
	p.SeeIn("region", "Posture", "Preview: 880 ms")
	p.ClickIn("region", "Motions", "button", "Play: nod")
	p.SeeIn("status", "", "Done: motion/nod done in 800ms")
	d.drawn(t, p, skeleton.Front) // with its head turned
	p.ClickIn("region", "Posture", "button", "Stop robot")
	p.SeeIn("status", "", "Stopping")

	t.Run("files", func(t *testing.T) { d.files(t, p.For(t)) })

	if missing := p.Untranslated("de"); len(missing) > 0 {
		t.Errorf("English on the German page: %q", missing)
	}
	p.Sound(browser.Phone, browser.Desktop)
	p.Fits(browser.Sizes...)
	if shot := os.Getenv("KENNEL_SHOT"); shot != "" {
		p.Shot(shot)
	}
	testwait.Until(t, browser.Patience, "play and stop", testwait.Holds(func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.did) == 2 && d.did[0] == `play {"name":"motion/nod"}` && strings.HasPrefix(d.did[1], "robot_stop ")
	}))
}

// edits changes the motion nod, and leaves it with keyframes at 0, 480 and 880 ms, the second at 0.301 rad.
func edits(t *testing.T, p *browser.Page) {
	p.ClickIn("region", "Motions", "button", "Show keyframes: nod")
	want := func(what string, low, high int, at string) {
		t.Helper()
		if value, text := edited(t, p); value < low || value > high || text != at {
			t.Errorf("%s: %d in %q, want %d to %d in %q", what, value, text, low, high, at)
		}
	}
	from := dot(t, p, 1)
	p.Drag(from, [2]float64{from[0], from[1] - 6}) // 40 px are 2 rad
	want("dragged upward", 450_000, 750_000, "2 / 3 · 400 ms")
	from = dot(t, p, 1)
	p.Drag(from, [2]float64{from[0] + 40, from[1]})
	if value, at := edited(t, p); value < 450_000 || at == "2 / 3 · 400 ms" || !strings.HasPrefix(at, "2 / 3") {
		t.Errorf("dragged to the right: %d in %q", value, at)
	}
	from = dot(t, p, 1)
	p.Drag(from, from) // a click alone is no change
	p.Click("button", "Undo")
	want("one undone", 450_000, 750_000, "2 / 3 · 400 ms")
	p.Focus("button", "Undo")
	p.Press("Enter")
	want("both undone", 300_000, 300_000, "2 / 3 · 400 ms")
	if string(p.Eval(`document.querySelector('[data-do="undo"]').disabled && document.activeElement.matches("[data-keyframe]")`)) != "true" {
		t.Error("with nothing to undo, the button can be pressed or the focus is lost")
	}
	p.FocusField("head.yaw")
	p.Press("ArrowRight")
	want("one step by a key", 301_000, 301_000, "2 / 3 · 400 ms")
	p.Press("End")
	want("as far as it can", 1_000_000, 1_000_000, "2 / 3 · 400 ms")
	p.Click("button", "Undo")
	p.Click("button", "Add keyframe")
	want("a keyframe more", 301_000, 301_000, "3 / 4 · 800 ms")
	p.Click("button", "Delete keyframe")
	want("without it", 301_000, 301_000, "2 / 3 · 400 ms")
	p.Fill("Time in ms", "483")
	p.Press("Tab")
	want("at a whole frame", 301_000, 301_000, "2 / 3 · 480 ms")
	p.Click("button", "Next")
	want("the last", 0, 0, "3 / 3 · 880 ms")
}

// files saves, downloads, uploads and deletes.
func (d *kennelDog) files(t *testing.T, p *browser.Page) {
	p.Fill("Save as", "my_nod")
	p.ClickIn("region", "Keyframes", "button", "Save")
	p.SeeIn("status", "", "my_nod: Uploaded")
	name, file := p.Download("link", "Download: my_nod")
	saved, err := motionwire.ParseEdited(bytes.TrimPrefix(file, []byte(sign)))
	if want := []motionwire.Keyframe{{Values: []int32{0}}, {AtMS: 480, Values: []int32{301_000}}, {AtMS: 880, Values: []int32{0}}}; err != nil || name != "my_nod.toy" ||
		!bytes.HasPrefix(file, []byte(sign)) || fmt.Sprint(saved.Keyframes) != fmt.Sprint(want) || saved.SpanMS != 880 {
		t.Errorf("%s: %s, %v", name, file, err)
	}
	p.ClickIn("region", "Motions", "button", "Show keyframes: my_nod")
	saved.Name = "my_nod"
	name, file = p.Download("button", "Save as drawing")
	if name != "my_nod.svg" {
		t.Errorf("the drawing is %s", name)
	}
	alike(t, "drawing", string(file), string(skeleton.AppendSVG(nil, &d.body, &saved.Sequence, d.angles, skeleton.Side)), 0.11)
	name, file = p.Download("button", "Save body")
	if !strings.HasSuffix(name, ".urdf") {
		t.Errorf("the body is %s", name)
	}
	alike(t, "body", string(file), string(skeleton.AppendURDF(nil, &d.body)), 1.1e-5)

	p.Fill("Name", "bad")
	p.Attach("File", "bad.toy", []byte("NOPE"))
	p.ClickIn("region", "Upload a motion", "button", "Upload")
	p.SeeIn("status", "", "bad: Refused by your robot: it is no motion")
	p.SeeIn("region", "Motions", "error: position 4: signature; expected TOY1, found NOPE")
	if n := string(p.Eval(`document.querySelectorAll('[aria-label="Play: bad"]').length`)); n != "0" {
		t.Error("a refused motion can be played")
	}
	p.Fill("Name", "nod")
	p.ClickIn("region", "Upload a motion", "button", "Upload")
	p.SeeIn("status", "", "Not done: nod is the name of a motion that the robot has anyway")
	p.Eval(`window.confirm = () => true`)
	p.ClickIn("region", "Motions", "button", "Delete: my_nod")
	p.SeeIn("status", "", "Deleted: my_nod")
	testwait.Until(t, browser.Patience, "the list without it", testwait.Holds(func() bool { return !strings.Contains(p.TextOf("region", "Motions"), "my_nod") }))
}
