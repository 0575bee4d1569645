package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kennel/infra/auth"
	"kennel/jdocs"

	"pgregory.net/rapid"
)

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
