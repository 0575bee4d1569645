package docs_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"
)

// TestModelOfDocuments plays random histories of two robots' agents, an original robot, their owner's app, an operator and two kenneld over
// one Postgres: writes, reads, deletes, offline days, messages lost and delivered twice, deaths and restarts, in any order of their
// steps. At the end of each history every change that was reported saved is in the documents' history and was undone by no one who did
// not mean to, no version went back, and all hold the same (VEC-JDS-02, 03, 04, 08, 12). KENNEL_SOAK plays thousands, of any seed.
func TestModelOfDocuments(t *testing.T) {
	if os.Getenv("KENNEL_SOAK") != "" {
		setFlags(t, map[string]string{"rapid.checks": "3000", "rapid.steps": "60"})
	} else {
		setFlags(t, map[string]string{"rapid.checks": "50", "rapid.steps": "60", "rapid.seed": "1"})
	}
	check(t, t, plant{})
}

// setFlags sets flags for the time of a test, unless the command line did.
func setFlags(t *testing.T, values map[string]string) {
	t.Helper()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, v := range values {
		f := flag.Lookup(name)
		if given[name] {
			continue
		}
		was := f.Value.String()
		if err := f.Value.Set(v); err != nil { // not flag.Set, which counts as the command line
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(was) })
	}
}

// check plays histories in a house with that fault planted. tb hears of what the model finds.
func check(t *testing.T, tb rapid.TB, p plant) {
	h := newHouse(t, func() func() *pgxpool.Pool {
		dsn := pgtest.DSN(t)
		return func() *pgxpool.Pool { return openPool(t, dsn) }
	}(), p)
	runs := 0
	rapid.Check(tb, func(rt *rapid.T) {
		runs++
		play(rt, h, runs)
	})
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	pool, err := pg.Open(context.Background(), pg.Config{DSN: dsn, AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func play(t *rapid.T, h *house, run int) {
	w := newWorld(t, h, run)
	defer w.end()
	actions := map[string]func(*rapid.T){"": func(t *rapid.T) { w.t = t; w.check() }}
	for name, act := range w.actions() {
		actions[name] = func(t *rapid.T) { w.t = t; act() }
	}
	t.Repeat(actions)
	w.t = t
	w.agree()
}

// firstChange is the first change's number: beyond the values that settings have by themselves.
const firstChange = 1001

// change is one change of a field by a robot or a person. Its number is the value, which no other change has.
type change struct {
	n       int
	by      string // as in the document's history
	key     jdocs.Key
	field   string
	saved   bool // reported saved
	refused bool // reported not saved
	void    bool // reported saved on a robot that was then wiped
	applied uint64
}

func (c *change) String() string {
	return fmt.Sprintf("%s = %d in %s by %s", c.field, c.n, c.key, c.by)
}

// world is one history.
type world struct {
	t        *rapid.T
	house    *house
	robots   [2]*robot
	original *original
	account  string
	names    *strings.Replacer
	story    []string

	ops      []*work // in the kenneld
	messages []*message
	sent     int // messages

	changes   []*change // by number
	deletes   map[jdocs.Key]int
	restores  map[jdocs.Key][]uint64 // versions that were to be restored
	floor     map[jdocs.Key]uint64   // the highest version that anybody was told of
	given     map[jdocs.Key]map[uint64]string
	owed      [2]map[jdocs.Key]uint64 // what the listeners must have heard
	counted   map[thing.ID]*counted
	wholesale map[jdocs.Key]map[string]bool // what the original sent
}

// counted sums the additions to a robot's counter: those that were reported saved, and those of unknown outcome.
type counted struct{ sure, perhaps float64 }

const counter = "Pet.ms"

var modelFields = []string{"f1", "nest.a", "nest.b"}

const operator, owner = "ann@example.com", "owner" // as authors

func newWorld(t *rapid.T, h *house, run int) *world {
	h.serial++
	w := &world{t: t, house: h, names: strings.NewReplacer(), account: fmt.Sprintf("account-%d", h.serial), deletes: map[jdocs.Key]int{}, restores: map[jdocs.Key][]uint64{}, floor: map[jdocs.Key]uint64{},
		given: map[jdocs.Key]map[uint64]string{}, counted: map[thing.ID]*counted{}, wholesale: map[jdocs.Key]map[string]bool{}}
	h.now = w
	h.calls.Clear()
	for i := range w.owed {
		w.owed[i] = map[jdocs.Key]uint64{}
	}
	for _, k := range h.kenneld {
		k.start()
	}
	for i := range w.robots {
		id := thing.MustParse(fmt.Sprintf("vic:%07x%x", h.serial, i+1))
		w.robots[i] = &robot{w: w, name: fmt.Sprintf("robot %d", i+1), id: id, online: true}
		w.counted[id] = &counted{}
		w.robots[i].wipe()
	}
	w.original = newOriginal(w, thing.MustParse(fmt.Sprintf("vic:%07xf", h.serial)))
	w.names = strings.NewReplacer(string(w.robots[0].id), "robot-1", string(w.robots[1].id), "robot-2", string(w.original.id), "original",
		w.account, "account")
	return w
}

// say tells what happens. Names stand for ids, which differ each time a history is played.
func (w *world) say(format string, args ...any) {
	w.story = append(w.story, w.names.Replace(fmt.Sprintf(format, args...)))
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	if len(w.story) > 0 {
		w.t.Logf("The story:\n  %s", strings.Join(w.story, "\n  "))
	}
	w.t.Fatalf("%s", w.names.Replace(fmt.Sprintf(format, args...)))
}

// end stops everything, so that nothing of this history runs during the next.
func (w *world) end() {
	for _, r := range w.robots {
		r.die()
		_ = r.root.Close()
		_ = os.RemoveAll(r.dir)
	}
	for _, o := range w.ops {
		o.cut = true
		for !o.over {
			o.verdict <- errDied
			o.settle()
		}
	}
}

// settle waits until the work is at a gate or over.
func (o *work) settle() {
	select {
	case o.where = <-o.at:
	case <-o.done:
		o.over = true
	case <-time.After(time.Minute):
		panic("stuck: " + o.what + ", last " + o.where)
	}
}

func newOp(what string) *work {
	return &work{what: what, at: make(chan string), verdict: make(chan error), done: make(chan struct{})}
}

func (o *work) run(f func(ctx context.Context)) {
	go func() {
		defer close(o.done)
		f(context.WithValue(context.Background(), opKey{}, o))
	}()
	o.settle()
}

// at starts an op inside a kenneld. settled is called when it is over and the client has its answer.
func (w *world) at(k *kenneld, what string, f func(ctx context.Context), settled func(answered bool)) *work {
	o := newOp(what)
	o.k, o.gen = k, k.gen
	o.settled = func() { settled(o.answered()) }
	w.ops = append(w.ops, o)
	o.run(f)
	w.over(o)
	return o
}

// step lets an op run to its next gate.
func (w *world) step(o *work, verdict error) {
	o.verdict <- verdict
	o.settle()
	w.over(o)
}

func (w *world) over(o *work) {
	if !o.over || o.settled == nil {
		return
	}
	w.ops = slices.DeleteFunc(w.ops, func(x *work) bool { return x == o })
	f := o.settled
	o.settled = nil
	f()
}

func (w *world) finish(o *work) {
	for !o.over {
		w.step(o, nil)
	}
}

func (w *world) anyKenneld() *kenneld {
	for _, k := range w.house.kenneld {
		if k.alive {
			return k
		}
	}
	return nil
}

// answer takes a message to its answer.
func (w *world) answer(m *message, k *kenneld) {
	for m.answer == nil {
		if m.serving == nil {
			w.serve(m, k)
		} else {
			w.step(m.serving, nil)
		}
	}
}

func (w *world) serve(m *message, k *kenneld) {
	w.say("%s takes message %d of %s (%s)", k.name, m.n, m.from.name, m.what)
	t, err := topics.Parse(m.topic)
	if err != nil {
		w.fatalf("%v", err)
	}
	in := kitmqtt.Incoming{Thing: t.Thing, Service: t.Name, Method: t.Method, Payload: m.payload, Received: time.Now()}
	var id string
	var answer []byte
	server := k.mqtt
	o := w.at(k, fmt.Sprintf("message %d of %s", m.n, m.from.name), func(ctx context.Context) { id, answer = server.Serve(ctx, in) },
		func(answered bool) {
			m.serving = nil
			if answered && answer != nil {
				m.topicID, m.answer = id, answer
			}
		})
	if !o.over {
		m.serving = o
	}
}

func (w *world) deliver(m *message) {
	w.say("%s has the answer to message %d", m.from.name, m.n)
	w.messages = slices.DeleteFunc(w.messages, func(x *message) bool { return x == m })
	o := m.client
	o.verdict <- nil
	o.settle()
	m.from.look()
}

// event is one step that may come next.
type event struct {
	what string
	do   func()
}

// events are the steps of what is under way.
func (w *world) events() []event {
	var out []event
	for _, m := range w.messages {
		switch {
		case m.answer != nil && m.client != nil:
			out = append(out, event{"", func() { w.deliver(m) }})
		case m.answer == nil && m.serving == nil:
			for _, k := range w.house.kenneld {
				if k.alive {
					out = append(out, event{"", func() { w.serve(m, k) }})
				}
			}
		}
	}
	for _, o := range w.ops {
		out = append(out, event{fmt.Sprintf("%s (%s)", o.where, o.what), func() { w.step(o, nil) }})
	}
	return out
}

func (w *world) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

func (w *world) pickRobot() *robot { return w.robots[w.pick("robot", len(w.robots))] }

// pickKenneld returns a kenneld that is up, or skips the action.
func (w *world) pickKenneld() *kenneld {
	var up []*kenneld
	for _, k := range w.house.kenneld {
		if k.alive {
			up = append(up, k)
		}
	}
	if len(up) == 0 {
		w.t.Skip("no kenneld")
	}
	return up[w.pick("kenneld", len(up))]
}

func (w *world) pickField() string { return modelFields[w.pick("field", len(modelFields))] }

// wants begins a change: the number is its value.
func (w *world) wants(by string, key jdocs.Key, field string) *change {
	c := &change{n: firstChange + len(w.changes), by: by, key: key, field: field}
	w.changes = append(w.changes, c)
	return c
}

func (c *change) fields() map[string]json.RawMessage {
	return map[string]json.RawMessage{c.field: json.RawMessage(strconv.Itoa(c.n))}
}

// told notes that a client was told of a version.
func (w *world) told(key jdocs.Key, v uint64) { w.floor[key] = max(w.floor[key], v) }

// accepted notes a version that a writer other than an agent was given.
func (w *world) accepted(key jdocs.Key, v, floor uint64, who string, owing [2]int) {
	if v <= floor {
		w.fatalf("%s was given version %d of %s after version %d had been reported", who, v, key, floor)
	}
	if w.given[key] == nil {
		w.given[key] = map[uint64]string{}
	}
	if other, twice := w.given[key][v]; twice {
		w.fatalf("version %d of %s was given to %s and to %s", v, key, other, who)
	}
	w.given[key][v] = who
	w.told(key, v)
	for i, k := range w.house.kenneld {
		if k.alive && k.gen == owing[i] && key.Thing != "" && who != string(key.Thing) {
			w.owed[i][key] = max(w.owed[i][key], v)
		}
	}
}

// owing returns the lives of the kenneld that hear of a change made from now on.
func (w *world) owing() (gens [2]int) {
	for i, k := range w.house.kenneld {
		gens[i] = k.gen
	}
	return gens
}
