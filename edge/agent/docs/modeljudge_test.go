package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"kennel/infra/thing"
	"kennel/jdocs"
)

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
