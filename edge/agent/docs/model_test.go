package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/docs"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"

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

// message is a robot's request as the broker holds it.
type message struct {
	n       int
	from    *robot
	what    string
	topic   string
	payload []byte
	client  *work // waits for the answer; nil: no longer
	serving *work
	topicID string // of the answer
	answer  []byte
}

// robot is one robot with the agent that runs on it now.
type robot struct {
	w        *world
	name     string
	id       thing.ID
	dir      string
	root     *os.Root
	disk     *disk
	link     *link
	agent    *docs.Agent
	op       *work // an exchange under way
	err      error
	online   bool
	versions map[string]uint64
}

// disk is the robot's storage until it dies: from then on nothing is written.
type disk struct {
	docs.Files
	root *os.Root
	fuse int // it dies at this step, two for each write; 0: not
	dead bool
}

var errDead = errors.New("the robot is dead")

func (d *disk) burns() bool {
	if d.fuse > 0 {
		d.fuse--
		d.dead = d.dead || d.fuse == 0
	}
	return d.dead
}

// Write dies before the write, leaving the half-written file that a kill leaves, or after it.
func (d *disk) Write(name string, data []byte) error {
	if d.dead {
		return errDead
	}
	if d.burns() {
		return errors.Join(errDead, d.root.WriteFile(name+".1.1.kennel-tmp", data[:len(data)/2], 0o644))
	}
	if err := d.Files.Write(name, data); err != nil {
		return err
	}
	if d.burns() {
		return errDead
	}
	return nil
}

// link carries the requests of one life of a robot.
type link struct {
	r      *robot
	client *kitmqtt.Client
	giveUp context.CancelFunc
	dead   bool
}

func (l *link) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	ctx, l.giveUp = context.WithCancel(ctx)
	defer l.giveUp()
	return l.client.Do(ctx, service, method, body)
}

func (l *link) publish(ctx context.Context, topic string, payload []byte) error {
	r := l.r
	if l.dead || !r.online {
		l.giveUp()
		return errors.New("not connected")
	}
	w := r.w
	w.sent++
	_, what, _ := strings.Cut(topic, "/req/")
	m := &message{n: w.sent, from: r, what: what, topic: topic, payload: slices.Clone(payload), client: opOf(ctx)}
	w.messages = append(w.messages, m)
	if err := m.client.pass(fmt.Sprintf("%s waits for the answer to message %d (%s)", r.name, m.n, what)); err != nil {
		m.client = nil
		l.giveUp()
		return err
	}
	m.client = nil
	return l.client.Deliver(topics.ResTopic(r.id, m.topicID), m.answer)
}

const (
	modelSettings = robotfs.Persistent + "/jdocs/vic.RobotSettings.json"
	modelStats    = robotfs.Persistent + "/jdocs/vic.RobotLifetimeStats.json"
)

func (r *robot) settings() jdocs.Key { return jdocs.Key{Thing: r.id, Name: jdocs.RobotSettings} }
func (r *robot) stats() jdocs.Key    { return jdocs.Key{Thing: r.id, Name: jdocs.RobotLifetimeStats} }

// die ends the agent where it is. Its messages stay in the broker.
func (r *robot) die() {
	if r.disk == nil {
		return
	}
	r.disk.dead, r.link.dead = true, true
	for r.op != nil && !r.op.over {
		r.op.verdict <- errDead
		r.op.settle()
	}
	r.op = nil
}

// boot starts an agent from what is on disk.
func (r *robot) boot() {
	r.die()
	l := &link{r: r}
	l.client = kitmqtt.NewClient(r.id, l.publish)
	r.link, r.disk = l, &disk{Files: docs.RootFiles(r.root), root: r.root}
	cfg := docs.Config{Settings: jdocs.RobotSettings, Root: r.root, Remote: r.w.house.plant.remote(jdocswire.NewClient(l)), Log: silent,
		OnPushed: func(name jdocs.Name, v uint64) { r.w.told(jdocs.Key{Thing: r.id, Name: name}, v) }}
	a, err := docs.NewOn(cfg, r.disk)
	if err != nil {
		r.w.fatalf("%s does not start: %v", r.name, err)
	}
	if m := r.w.house.plant.merge; m != nil {
		a.SetMerge(m)
	}
	r.agent = a
}

// wipe boots the robot with an empty disk.
func (r *robot) wipe() {
	r.die()
	if r.root != nil {
		_ = r.root.Close()
		_ = os.RemoveAll(r.dir)
	}
	var err error
	if r.dir, err = os.MkdirTemp(memory(), "docmodel-"); err == nil {
		r.root, err = os.OpenRoot(r.dir)
	}
	if err != nil {
		r.w.fatalf("%v", err)
	}
	r.versions = nil
	r.boot()
}

// memory returns a folder in memory, where syncing costs nothing; "" where there is none. A kill loses nothing that was written.
func memory() string {
	const dir = "/dev/shm"
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return ""
	}
	return dir
}

// look boots the robot if its disk died on the way.
func (r *robot) look() {
	if r.op != nil && r.op.over {
		r.op = nil
	}
	if r.disk.dead {
		r.w.say("%s died while it wrote a file, and starts again", r.name)
		r.boot()
	}
}

func (r *robot) sync(what string, f func(context.Context) error) {
	r.w.say("%s %s", r.name, what)
	r.op = newOp(r.name + " " + what)
	r.op.run(func(ctx context.Context) { r.err = f(ctx) })
	r.look()
}

// waiting returns the message whose answer the robot waits for.
func (r *robot) waiting() *message {
	for _, m := range r.w.messages {
		if r.op != nil && m.client == r.op {
			return m
		}
	}
	return nil
}

// undisturbed takes the robot's exchange to its end.
func (r *robot) undisturbed() {
	for r.op != nil {
		m := r.waiting()
		k := r.w.anyKenneld()
		if k == nil {
			r.giveUp()
			continue
		}
		r.w.answer(m, k)
		r.w.deliver(m)
	}
}

// giveUp ends the wait for an answer; the message stays in the broker.
func (r *robot) giveUp() {
	for r.op != nil {
		r.op.verdict <- errors.New("no answer")
		r.op.settle()
		r.look()
		if r.online {
			return // the exchange may continue with the next document
		}
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

// actions are what the people and robots of the history may do.
func (w *world) actions() map[string]func() {
	return map[string]func(){
		"steps 1": func() { w.someSteps(3) }, "steps 2": func() { w.someSteps(6) }, "steps 3": func() { w.someSteps(12) },
		"robot sets":        func() { w.robotSets(w.pickRobot(), w.pickField()) },
		"robot counts":      func() { w.robotCounts(w.pickRobot()) },
		"program edits":     func() { w.programEdits(w.pickRobot(), w.pickField()) },
		"robot syncs":       func() { w.robotSyncs(w.pickRobot(), false) },
		"robot synced":      func() { w.robotSyncs(w.pickRobot(), true) },
		"robot unheard":     func() { w.robotUnheard(w.pickRobot()) },
		"robot hinted":      func() { w.robotHinted(w.pickRobot()) },
		"robot gives up":    func() { w.robotGivesUp(w.pickRobot()) },
		"robot dies":        func() { w.robotDies(w.pickRobot()) },
		"robot will die":    func() { w.robotWillDie(w.pickRobot()) },
		"robot wiped":       func() { w.robotWiped(w.pickRobot()) },
		"robot offline":     func() { w.robotOffline(w.pickRobot()) },
		"message twice":     w.messageTwice,
		"message lost":      w.messageLost,
		"app sets":          func() { w.personSets(owner) },
		"operator sets":     func() { w.personSets(operator) },
		"app reads":         w.appReads,
		"operator deletes":  w.operatorDeletes,
		"operator restores": w.operatorRestores,
		"operator counts":   w.operatorCounts,
		"connection cut":    w.connectionCut,
		"original changes":  w.original.changes,
		"original writes":   func() { w.original.asks(true) },
		"original reads":    func() { w.original.asks(false) },
		"original deletes":  w.original.deletes,
		"kenneld dies":      w.kenneldDies,
		"kenneld starts":    w.kenneldStarts,
	}
}

func (w *world) someSteps(most int) {
	for range rapid.IntRange(1, most).Draw(w.t, "steps") {
		events := w.events()
		if len(events) == 0 {
			return
		}
		e := events[w.pick("next", len(events))]
		if e.what != "" {
			w.say("%s", e.what)
		}
		e.do()
	}
}

func (w *world) robotSets(r *robot, field string) {
	c := w.wants(string(r.id), r.settings(), field)
	err := r.agent.Set(context.Background(), jdocs.RobotSettings, c.fields())
	c.saved = err == nil
	w.say("%s sets %s = %d: %v", r.name, field, c.n, orSaved(err))
	if err != nil && !r.disk.dead {
		w.fatalf("%s: %v", r.name, err)
	}
	r.look()
}

func orSaved(err error) any {
	if err == nil {
		return "saved"
	}
	return err
}

func (w *world) robotCounts(r *robot) {
	n := float64(w.wants(string(r.id), r.stats(), counter).n)
	r.agent.AddStats(map[string]float64{counter: n})
	err := r.agent.FlushStats()
	w.say("%s counts %v more: %v", r.name, n, orSaved(err))
	switch {
	case err == nil:
		w.counted[r.id].sure += n
	case r.disk.dead:
		w.counted[r.id].perhaps += n
	default:
		w.fatalf("%s: %v", r.name, err)
	}
	r.look()
}

// programEdits changes the robot's file as an SDK program would: whole, in one go.
func (w *world) programEdits(r *robot, field string) {
	c := w.wants(string(r.id), r.settings(), field)
	w.say("a program on %s writes %s = %d into the file", r.name, field, c.n)
	p := filepath.Join(r.dir, modelSettings)
	b, err := os.ReadFile(p)
	if err != nil {
		w.fatalf("%v", err)
	}
	var f map[string]json.RawMessage
	if err := json.Unmarshal(b, &f); err != nil {
		w.fatalf("%v\n%s", err, b)
	}
	text, err := jdocs.SetFields(jdocs.RobotSettings, string(f["jdoc"]), c.fields())
	if err != nil {
		w.fatalf("%v", err)
	}
	f["jdoc"] = json.RawMessage(text)
	if b, err = json.Marshal(f); err != nil {
		w.fatalf("%v", err)
	}
	if err := os.WriteFile(p, b, 0o644); err != nil {
		w.fatalf("%v", err)
	}
	c.saved = true
}

func (w *world) robotSyncs(r *robot, toTheEnd bool) {
	if !r.online || r.op != nil && !toTheEnd {
		w.t.Skip("cannot")
	}
	if r.op == nil {
		r.sync("begins an exchange", func(ctx context.Context) error { return r.agent.Sync(ctx) })
	}
	if toTheEnd {
		r.undisturbed()
	}
}

// robotUnheard takes an exchange so far that a write is stored, and loses the answer.
func (w *world) robotUnheard(r *robot) {
	k := w.pickKenneld()
	if !r.online {
		w.t.Skip("cannot")
	}
	if r.op == nil {
		r.sync("begins an exchange", func(ctx context.Context) error { return r.agent.Sync(ctx) })
	}
	for r.op != nil {
		m := r.waiting()
		w.answer(m, k)
		if strings.HasSuffix(m.what, "/write") {
			w.say("the answer to message %d (%s) is lost", m.n, m.what)
			w.messages = slices.DeleteFunc(w.messages, func(x *message) bool { return x == m })
			r.giveUp()
			return
		}
		w.deliver(m)
	}
}

// robotHinted lets a kenneld tell the robot of a change that its listener heard of, which must be the latest.
func (w *world) robotHinted(r *robot) {
	if !r.online || r.op != nil {
		w.t.Skip("cannot")
	}
	k := w.pickKenneld()
	w.listened()
	k.mu.Lock()
	v := k.heard[r.settings()]
	k.mu.Unlock()
	if v == 0 {
		w.t.Skip("nothing heard")
	}
	w.say("%s hints at version %d to %s", k.name, v, r.name)
	k.hinter.DocChanged(context.Background(), r.settings(), v)
	r.sync("exchanges what it was hinted at", r.agent.SyncWanted)
}

// listened fails unless the listeners have heard of every change that a robot did not make itself.
func (w *world) listened() {
	for i, k := range w.house.kenneld {
		if !k.alive {
			continue
		}
		for key, v := range w.owed[i] {
			if err := k.await(key, v); err != nil {
				w.fatalf("%v", err)
			}
		}
	}
}

func (w *world) robotGivesUp(r *robot) {
	if r.op == nil {
		w.t.Skip("nothing awaited")
	}
	w.say("%s gives up waiting", r.name)
	r.giveUp()
}

func (w *world) robotDies(r *robot) {
	w.say("%s is killed and starts again", r.name)
	r.boot()
}

func (w *world) robotWillDie(r *robot) {
	r.disk.fuse = rapid.IntRange(1, 8).Draw(w.t, "fuse")
	w.say("%s will die at step %d of its next writes", r.name, r.disk.fuse)
}

// robotWiped: what it had not pushed is gone, as said (VEC-JDS-08).
func (w *world) robotWiped(r *robot) {
	w.say("%s is wiped", r.name)
	pushed := map[string]bool{}
	for _, rev := range w.history(r.settings()) {
		for _, v := range flat(rev.JSON) {
			pushed[v] = true
		}
	}
	for _, c := range w.changes {
		c.void = c.void || c.by == string(r.id) && !pushed[strconv.Itoa(c.n)]
	}
	n := w.counted[r.id]
	n.perhaps += n.sure
	n.sure = 0
	for _, rev := range w.history(r.stats()) {
		if x, ok := w.added(r.stats(), rev); ok {
			n.sure, n.perhaps = n.sure+x, n.perhaps-x
		}
	}
	r.wipe()
}

func (w *world) robotOffline(r *robot) {
	r.online = !r.online
	w.say("%s is online: %v", r.name, r.online)
	if !r.online {
		r.giveUp()
	}
}

func (w *world) messageTwice() {
	var some []*message
	for _, m := range w.messages {
		if m.answer != nil {
			some = append(some, m)
		}
	}
	if len(some) == 0 || len(w.messages) > 8 {
		w.t.Skip("no message")
	}
	m := *some[w.pick("message", len(some))]
	w.say("the broker will deliver message %d of %s once more", m.n, m.from.name)
	m.client, m.answer, m.topicID = nil, nil, ""
	w.messages = append(w.messages, &m)
}

func (w *world) messageLost() {
	var some []*message
	for _, m := range w.messages {
		if m.serving == nil {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		w.t.Skip("no message")
	}
	m := some[w.pick("message", len(some))]
	what := "message"
	if m.answer != nil {
		what = "the answer to message"
	}
	w.say("%s %d of %s is lost", what, m.n, m.from.name)
	w.messages = slices.DeleteFunc(w.messages, func(x *message) bool { return x == m })
	if o := m.client; o != nil {
		o.verdict <- errors.New("lost")
		o.settle()
		m.from.look()
	}
}

// peoplesDocs are the documents that a person may change.
func (w *world) peoplesDocs(who string) []jdocs.Key {
	keys := []jdocs.Key{w.robots[0].settings(), w.robots[1].settings(), w.original.settings()}
	if who == owner {
		keys = append(keys, w.original.accounts())
	}
	return keys
}

func (w *world) caller(who string) auth.Caller {
	if who == owner {
		return auth.Caller{Role: auth.Owner, Account: w.account, Name: "bob@example.org"}
	}
	return auth.Caller{Role: auth.Support, Name: operator}
}

// url is the key as a person names it: by a robot of theirs.
func (w *world) url(key jdocs.Key) jdocs.Key {
	if key.Thing == "" {
		return jdocs.Key{Thing: w.original.id, Name: key.Name}
	}
	return key
}

func (w *world) personSets(who string) {
	keys := w.peoplesDocs(who)
	key, field, k := keys[w.pick("document", len(keys))], w.pickField(), w.pickKenneld()
	c := w.wants(who, key, field)
	floor, owing, caller := w.floor[key], w.owing(), w.caller(who)
	var status int
	var got, body string
	var version uint64
	w.say("%s asks %s for %s", who, k.name, c)
	w.at(k, fmt.Sprintf("%s sets %s = %d", who, field, c.n), func(ctx context.Context) {
		st, doc, text := k.person(ctx, caller, http.MethodPatch, w.url(key), "", fmt.Sprintf(`{"set":{%q:%d},"force":true}`, field, c.n))
		status, version, got, body = st, doc.Version, string(doc.JSON), text
	}, func(answered bool) {
		w.say("%s: %s: heard: %v, %d, version %d", who, c, answered, status, version)
		switch {
		case !answered || status >= 500:
		case status != http.StatusOK:
			w.fatalf("%s was refused: %d %s", c, status, body)
		default:
			c.saved = true
			if flat(got)[field] != strconv.Itoa(c.n) {
				w.fatalf("%s: reported saved as %s", c, got)
			}
			w.accepted(key, version, floor, who, owing)
		}
	})
}

func (w *world) appReads() {
	keys := w.peoplesDocs(owner)
	key, k := keys[w.pick("document", len(keys))], w.pickKenneld()
	floor, caller := w.floor[key], w.caller(owner)
	var status int
	var version uint64
	w.at(k, "the app reads "+key.String(), func(ctx context.Context) {
		st, doc, _ := k.person(ctx, caller, http.MethodGet, w.url(key), "", "")
		status, version = st, doc.Version
	}, func(answered bool) {
		if !answered || status >= 500 {
			return
		}
		w.say("the app reads %s: %d, version %d", key, status, version)
		if status == http.StatusOK && version < floor {
			w.fatalf("the app reads version %d of %s after version %d had been reported", version, key, floor)
		}
		if status == http.StatusNotFound && floor > 0 && w.deletes[key] == 0 {
			w.fatalf("%s is gone: nobody deleted it", key)
		}
		w.told(key, version)
	})
}

func (w *world) operatorDeletes() {
	keys := w.peoplesDocs(owner)
	key, k := keys[w.pick("document", len(keys))], w.pickKenneld()
	floor, owing := w.floor[key], w.owing()
	w.deletes[key]++
	var version uint64
	var err error
	w.at(k, "the operator deletes "+key.String(), func(ctx context.Context) { version, err = k.docs.Delete(ctx, key, operator) },
		func(answered bool) {
			w.say("the operator deletes %s: heard: %v, version %d, %v", key, answered, version, err)
			if answered && err == nil && version > 0 {
				w.accepted(key, version, floor, operator, owing)
			}
		})
}

// operatorRestores makes an earlier version the current one, which undoes what came since on purpose.
func (w *world) operatorRestores() {
	keys := w.peoplesDocs(operator)
	key, k := keys[w.pick("document", len(keys))], w.pickKenneld()
	floor, owing, caller := w.floor[key], w.owing(), w.caller(operator)
	if floor == 0 {
		w.t.Skip("no version")
	}
	old := rapid.Uint64Range(1, floor).Draw(w.t, "version")
	w.restores[key] = append(w.restores[key], old)
	var status int
	var version uint64
	var by, body string
	w.at(k, fmt.Sprintf("the operator restores version %d of %s", old, key), func(ctx context.Context) {
		st, doc, text := k.person(ctx, caller, http.MethodPost, key, "/restore", fmt.Sprintf(`{"version":%d}`, old))
		status, version, by, body = st, doc.Version, doc.By, text
	}, func(answered bool) {
		w.say("the operator restores version %d of %s: heard: %v, %d, version %d", old, key, answered, status, version)
		switch {
		case !answered || status >= 500 || strings.Contains(body, "is a deletion"):
		case status != http.StatusOK:
			w.fatalf("restore was refused: %d %s", status, body)
		default:
			w.told(key, version)
			if by == operator && version > floor && w.given[key][version] == "" { // else it is the version that was there
				w.accepted(key, version, floor, operator, owing)
			}
		}
	})
}

// restored reports whether a version is an earlier one made current again.
func (w *world) restored(key jdocs.Key, rev jdocs.Revision, revs []jdocs.Revision) bool {
	return rev.By == operator && slices.ContainsFunc(w.restores[key], func(old uint64) bool {
		return old < rev.Version && revs[old-1].JSON == rev.JSON
	})
}

// operatorCounts adds to a counter as another reader and writer of the document does.
func (w *world) operatorCounts() {
	r, k := w.pickRobot(), w.pickKenneld()
	key := r.stats()
	c := w.wants(operator, key, counter)
	floor, owing := w.floor[key], w.owing()
	var res jdocs.WriteResult
	err := errors.New("did not come so far")
	n := w.counted[r.id]
	n.perhaps += float64(c.n)
	w.at(k, fmt.Sprintf("the operator counts %d more on %s", c.n, r.name), func(ctx context.Context) {
		rev, e := k.docs.Get(ctx, key)
		if e != nil {
			return
		}
		text, e := jdocs.AddStats([]byte(rev.JSON), map[string]float64{counter: float64(c.n)})
		if e != nil {
			return
		}
		d := rev.Doc
		d.JSON = string(text)
		res, err = k.docs.Write(ctx, key, d, operator)
	}, func(answered bool) {
		w.say("the operator counts %d more on %s: heard: %v, %v, %v", c.n, r.name, answered, res, err)
		switch {
		case !answered || err != nil:
		case res.Status != jdocs.Accepted:
			n.perhaps -= float64(c.n)
		default:
			n.perhaps, n.sure = n.perhaps-float64(c.n), n.sure+float64(c.n)
			w.accepted(key, res.Latest, floor, operator, owing)
		}
	})
}

// connectionCut: the client of something that runs in a kenneld never hears the answer.
func (w *world) connectionCut() {
	var some []*work
	for _, o := range w.ops {
		if !o.cut && !slices.ContainsFunc(w.messages, func(m *message) bool { return m.serving == o }) {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		w.t.Skip("nothing under way")
	}
	o := some[w.pick("op", len(some))]
	w.say("the connection breaks under: %s", o.what)
	o.cut = true
	w.original.hangUp(o)
}

func (w *world) kenneldDies() {
	k := w.pickKenneld()
	w.say("%s is killed", k.name)
	k.die(func() {
		for _, o := range slices.Clone(w.ops) {
			for o.k == k && !o.over {
				w.step(o, errDied)
			}
		}
	})
}

func (w *world) kenneldStarts() {
	i := w.pick("which", len(w.house.kenneld))
	k := w.house.kenneld[i]
	if k.alive {
		w.t.Skip("it is up")
	}
	w.say("%s starts", k.name)
	w.owed[i] = map[jdocs.Key]uint64{}
	k.start()
}

// check holds after every action: no version went back on a robot, and its files are whole.
func (w *world) check() {
	for _, r := range w.robots {
		now := r.agent.Versions()
		for name, v := range r.versions {
			if now[name] < v {
				w.fatalf("%s on %s went back from version %d to %d", name, r.name, v, now[name])
			}
		}
		r.versions = now
		for _, name := range []string{modelSettings, modelStats} {
			r.file(name)
		}
	}
}

// file returns the document and its version in a robot's file.
func (r *robot) file(name string) (string, uint64) {
	b, err := fs.ReadFile(r.root.FS(), name)
	var f struct {
		Version uint64          `json:"doc_version"`
		Jdoc    json.RawMessage `json:"jdoc"`
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		r.w.fatalf("%s: %s: %v\n%s", r.name, path.Base(name), err, b)
	}
	return string(f.Jdoc), f.Version
}

// agree ends the history: everything under way ends, all are online, and all must come to hold the same.
func (w *world) agree() {
	w.say("now all is well")
	for i, k := range w.house.kenneld {
		if !k.alive {
			w.owed[i] = map[jdocs.Key]uint64{}
		}
		k.start()
	}
	for _, r := range w.robots {
		r.disk.fuse, r.online = 0, true
		r.undisturbed()
	}
	for i := 0; len(w.ops) > 0 || len(w.messages) > 0; i++ {
		for _, m := range slices.Clone(w.messages) {
			if m.serving == nil && m.answer == nil {
				w.serve(m, w.house.kenneld[i%2])
			}
		}
		for len(w.ops) > 0 {
			w.finish(w.ops[0])
		}
		w.messages = slices.DeleteFunc(w.messages, func(m *message) bool { return m.answer != nil })
	}
	w.listened()
	for range 2 { // the second exchange proves that the first left nothing
		for _, r := range w.robots {
			r.sync("exchanges all", r.agent.Sync)
			r.undisturbed()
			if r.err != nil {
				w.fatalf("%s with a good link: %v", r.name, r.err)
			}
		}
		w.original.settle()
	}
	for _, r := range w.robots {
		if d := r.agent.Dirty(); len(d) > 0 {
			w.fatalf("%s still has something to push: %v", r.name, d)
		}
		w.same(r.name, r.settings(), func() (string, uint64) { return r.file(modelSettings) })
		w.same(r.name, r.stats(), func() (string, uint64) { return r.file(modelStats) })
		w.judge(r.settings())
		w.judgeCounter(r)
	}
	for _, key := range []jdocs.Key{w.original.settings(), w.original.accounts()} {
		d := w.original.docs[key]
		w.same("the original", key, func() (string, uint64) { return d.text(), d.version })
		w.judge(key)
	}
	for _, c := range w.changes {
		if c.field != counter {
			w.kept(c)
		}
	}
}

// same fails unless a holder's copy equals the cloud's.
func (w *world) same(who string, key jdocs.Key, copied func() (string, uint64)) {
	text, version := copied()
	revs := w.history(key)
	if len(revs) == 0 || revs[len(revs)-1].Deleted {
		if version != 0 {
			w.fatalf("%s has version %d of %s, the cloud none", who, version, key)
		}
		return
	}
	if cur := revs[len(revs)-1]; cur.Version != version || !jdocs.Equal([]byte(text), []byte(cur.JSON)) {
		w.fatalf("%s of %s\n%s has %d %s\nthe cloud has %d %s (deleted: %v)", key.Name, key.Thing, who, version, brief(text), cur.Version, brief(cur.JSON), cur.Deleted)
	}
}

// history returns all versions, the first first, read beside the kenneld.
func (w *world) history(key jdocs.Key) []jdocs.Revision {
	revs, err := w.house.plain.History(context.Background(), key, jdocs.MaxHistory)
	if err != nil {
		w.fatalf("%v", err)
	}
	slices.Reverse(revs)
	return revs
}

// flat returns the values of a document by dotted name.
func flat(text string) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, b json.RawMessage)
	walk = func(prefix string, b json.RawMessage) {
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) != nil || m == nil {
			out[prefix] = string(b)
			return
		}
		for k, v := range m {
			if prefix != "" {
				k = prefix + "." + k
			}
			walk(k, v)
		}
	}
	if text != "" {
		walk("", json.RawMessage(text))
	}
	return out
}

// judge reads a document's history: each version may differ from the one before only in what its author wanted, and wanted just then.
func (w *world) judge(key jdocs.Key) {
	last := map[string]int{} // the newest change of an author in a field
	deleted := 0
	prev := jdocs.Revision{Deleted: true}
	revs := w.history(key)
	for i, rev := range revs {
		if rev.Version != uint64(i+1) {
			w.fatalf("%s: version %d comes as number %d of its history", key, rev.Version, i+1)
		}
		if rev.Deleted {
			if deleted++; deleted > w.deletes[key] {
				w.fatalf("%s: version %d is a deletion that nobody asked for", key, rev.Version)
			}
			prev = rev
			continue
		}
		if w.restored(key, rev, revs) {
			prev = rev
			continue
		}
		if sent := w.wholesale[key]; rev.By == string(w.original.id) {
			if !sent[rev.JSON] {
				w.fatalf("%s: version %d is nothing that the original sent: %s", key, rev.Version, rev.JSON)
			}
			for field, v := range flat(rev.JSON) {
				if c := w.changeOf(v); c != nil && c.by == rev.By && c.field == field && c.applied == 0 {
					c.applied = rev.Version
				}
			}
			prev = rev
			continue
		}
		base := flat(prev.JSON)
		if prev.Deleted {
			base = flat(jdocs.Default(key.Name).JSON)
		}
		is := flat(rev.JSON)
		if by := thing.ID(rev.By); by == key.Thing && prev.Deleted { // made again from the robot's copy: of whatever was once there
			for field, v := range is {
				if c := w.changeOf(v); c != nil && c.by == rev.By && c.field == field && c.n > last[rev.By+field] {
					c.applied, last[rev.By+field] = rev.Version, c.n
				}
			}
			prev = rev
			continue
		}
		for field := range base {
			if _, ok := is[field]; !ok {
				w.lost(key, prev, rev, "%s removed %s, which it never wanted", rev.By, field)
			}
		}
		for _, field := range slices.Sorted(maps.Keys(is)) {
			if is[field] == base[field] {
				continue
			}
			c := w.changeOf(is[field])
			if back := c != nil && c.key == key && c.field == field && c.applied != 0; back && thing.ID(rev.By) == key.Thing && !hasParent(base, field) {
				continue
			}
			switch {
			case c == nil || c.by != rev.By || c.key != key || c.field != field:
				w.lost(key, prev, rev, "%s put %s back from %s to %s, which it never wanted", rev.By, field, base[field], is[field])
			case c.refused:
				w.lost(key, prev, rev, "%s was refused", c)
			case thing.ID(c.by) == key.Thing && c.n <= last[c.by+field]:
				w.lost(key, prev, rev, "%s was in version %d before and comes again over %s", c, c.applied, base[field])
			case c.applied != 0:
				w.lost(key, prev, rev, "%s was in version %d before", c, c.applied)
			}
			c.applied, last[c.by+field] = rev.Version, c.n
		}
		prev = rev
	}
}

func (w *world) changeOf(value string) *change {
	n, err := strconv.Atoi(value)
	if i := n - firstChange; err == nil && i >= 0 && i < len(w.changes) {
		return w.changes[i]
	}
	return nil
}

func (w *world) lost(key jdocs.Key, prev, rev jdocs.Revision, format string, args ...any) {
	w.t.Helper()
	w.fatalf("LOST UPDATE in %s: %s\nversion %d by %s: %s\nversion %d by %s: %s", key, fmt.Sprintf(format, args...), prev.Version, prev.By,
		brief(prev.JSON), rev.Version, rev.By, brief(rev.JSON))
}

// kept fails if a change that was reported saved never got into the history, and its author did not change the field again.
func (w *world) kept(c *change) {
	if !c.saved || c.void || c.applied > 0 {
		return
	}
	robots := c.by != operator && c.by != owner
	for _, later := range w.changes[c.n-firstChange+1:] {
		if robots && later.by == c.by && later.key == c.key && later.field == c.field {
			return // changed again before it was sent
		}
	}
	w.fatalf("LOST UPDATE: %s was reported saved and never came into the history", c)
}

// added returns what a version added to the counter by itself; ok only for the robot's own versions.
func (w *world) added(key jdocs.Key, rev jdocs.Revision) (float64, bool) {
	if rev.By != string(key.Thing) {
		return 0, false
	}
	count := func(version uint64) float64 {
		if version == 0 {
			return 0
		}
		r, err := w.house.plain.Revision(context.Background(), key, version)
		if err != nil {
			w.fatalf("%v", err)
		}
		n, _ := strconv.ParseFloat(flatStats(r.JSON)[counter], 64)
		return n
	}
	return count(rev.Version) - count(rev.Version-1), true
}

// flatStats: the dots of counters are part of their names.
func flatStats(text string) map[string]string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &m)
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// hasParent is false for a field in an object that was removed. If the robot changed another of its fields at the same time, the object
// comes back whole: both sides changed it, and the local value wins (VEC-JDS-08).
func hasParent(doc map[string]string, field string) bool {
	parent, _, nested := strings.Cut(field, ".")
	if !nested {
		return true
	}
	for name := range doc {
		if strings.HasPrefix(name, parent+".") {
			return true
		}
	}
	return false
}

// brief returns what is interesting in a document: the fields of the model.
func brief(text string) string {
	var out []string
	for _, f := range modelFields {
		if v, ok := flat(text)[f]; ok {
			out = append(out, f+"="+v)
		}
	}
	if v, ok := flatStats(text)[counter]; ok {
		out = append(out, counter+"="+v)
	}
	return "{" + strings.Join(out, " ") + "}"
}

func (w *world) judgeCounter(r *robot) {
	text, _ := r.file(modelStats)
	got, err := strconv.ParseFloat(flatStats(text)[counter], 64)
	n := w.counted[r.id]
	if err != nil || got < n.sure || got > n.sure+n.perhaps {
		var b strings.Builder
		for _, rev := range w.history(r.stats()) {
			fmt.Fprintf(&b, "version %d by %s: %s\n", rev.Version, rev.By, flatStats(rev.JSON)[counter])
		}
		w.fatalf("LOST OR DOUBLE COUNT: %s of %s is %v, %v; counted were %v, and perhaps %v more\n%s", counter, r.name, got, err, n.sure, n.perhaps, b.String())
	}
}
