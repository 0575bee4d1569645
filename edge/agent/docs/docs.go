// Package docs keeps a robot's documents (vic.RobotSettings, vic.RobotLifetimeStats) and the cloud's in step, and copies of its owner's (VEC-JDS-06 to 08,
// VEC-JDS-12, VEC-DOC-01, 04 to 06, 13, 15, part of VEC-DOC-07).
//
// The local copy is authoritative for the robot, online or not. Beside it is a ledger with the content that robot and cloud last had in
// common. A document is dirty if it differs from that base; there is no other mark that could be wrong. Local copy, base and cloud merge
// three ways, field by field; counters merge by what each side added.
//
// A kill may come between any two steps. The ledger is written first and may hold more than one base; the local copy is written second, in
// one piece, and its version says which base counts:
//
//	take the cloud's content (version r): ledger += base r        -> local = merged, version r
//	send the local change (version v):    ledger += sent on v     -> cloud accepts v+1 -> ledger += base v+1 -> local = version v+1
//
// If it was killed after the cloud accepted but before the ledger says so, the agent finds its own content in version v+1, or in a later one
// if it created the document again, and takes it as the base; a counter is therefore never added twice.
package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/status"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/wake"
	"kennel/jdocs"
)

// Remote is the cloud's side of the documents (jdocswire.Client).
type Remote interface {
	Read(ctx context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error)
	Write(ctx context.Context, name jdocs.Name, d jdocs.Doc) (jdocs.WriteResult, error)
	Revision(ctx context.Context, name jdocs.Name, version uint64) (d jdocs.Doc, mine, found bool, err error)
}

// Source says who changed a document.
type Source string

// The sources.
const (
	FromRobot Source = "robot" // Set, or counters that were added
	FromFile  Source = "file"  // a program edited the local copy
	FromCloud Source = "cloud"
)

// Change is one change of a document. Fields are the top-level fields with their new values; nil means removed.
type Change struct {
	Doc    jdocs.Name
	Fields map[string]json.RawMessage
	Source Source
}

// Agent keeps the documents. Its methods are safe for concurrent use; Run is called once at a time.
type Agent struct {
	cfg    Config
	files  files
	docs   []*document
	owners []*document // copies of the owner's
	wake   wake.Signal // one slot: "look again" is said once

	syncing sync.Mutex // one exchange with the cloud at a time; taken before mu
	mu      sync.Mutex // everything below and in the documents

	online  bool
	added   map[string]float64 // counters not in the local copy yet
	flushAt time.Time
}

// document is one document of the robot. mu of the Agent guards it; what loadDocuments and loadControls set does not change.
type document struct {
	section    string
	name       jdocs.Name
	getEvery   time.Duration
	saveAfter  time.Duration
	counts     bool // counters: merged by adding
	merge      func(base, local, remote []byte) ([]byte, []string, error)
	defaults   string
	fmtVersion uint64
	localOnly  []string // fields that never leave the robot (updateCloudOnChange false)
	localPath  string
	ledgerPath string

	local  localDoc    // as on disk
	ledger ledger      // as on disk
	seen   fs.FileInfo // of the local copy when it was last read; nil: read it again

	missing    bool      // the cloud said that it has no such document
	want       bool      // ask the cloud now
	urgent     bool      // push now, without waiting for more changes
	getAt      time.Time // when to ask the cloud next
	dirtySince time.Time
	notBefore  time.Time // after a failure
	failures   int
	problem    string
	spoiled    time.Time // since when the local copy is damaged
	refused    string    // why the last edit of the local copy was not taken; "" once another was
}

// files is the robot's root, where documents are stored. Tests make it fail.
type files interface {
	Read(name string) ([]byte, fs.FileInfo, error) // the information is of the file that was read
	Write(name string, data []byte) error          // whole or not at all, and durable
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error // replaces a file; durable; fs.ErrNotExist if there is none to rename
}

type rootFiles struct{ root *os.Root }

func (f rootFiles) Read(name string) ([]byte, fs.FileInfo, error) {
	return atomicfile.ReadInfo(f.root, name, robotfs.MaxFile)
}
func (f rootFiles) Write(name string, data []byte) error {
	return robotfs.WriteFile(f.root, name, data, 0o644)
}
func (f rootFiles) Stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }
func (f rootFiles) Rename(from, to string) error {
	if err := f.root.Rename(from, to); err != nil {
		return err
	}
	return robotfs.SyncDir(f.root, path.Dir(to))
}

// New reads the control files and the local copies, repairs or creates them if needed, and returns an Agent that has its documents before
// the first contact with the cloud.
func New(cfg Config) (*Agent, error) {
	if cfg.Root == nil {
		return nil, errors.New("documents: want a root folder")
	}
	return newAgent(cfg, rootFiles{cfg.Root})
}

func newAgent(cfg Config, files files) (*Agent, error) {
	if cfg.Persistent == "" {
		cfg.Persistent = robotfs.Persistent
	}
	if cfg.Resources == "" {
		cfg.Resources = robotfs.Resources
	}
	if cfg.OnChanged == nil {
		cfg.OnChanged = func(Change) {}
	}
	if cfg.OnPushed == nil {
		cfg.OnPushed = func(jdocs.Name, uint64) {}
	}
	docs, err := loadDocuments(cfg)
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	owners, err := loadOwners(cfg, files)
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	a := &Agent{cfg: cfg, files: files, docs: docs, owners: owners, wake: wake.New(), added: map[string]float64{}, flushAt: time.Now().Add(statsFlush)}
	for _, dir := range []string{path.Join(cfg.Persistent, localFolder), ledgerFolder} {
		if err := cfg.Root.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
		if err := robotfs.CleanTemp(cfg.Root, dir); err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
	}
	for _, d := range docs {
		if err := d.loadControls(cfg.Root, cfg.Resources); err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
		d.localPath = path.Join(cfg.Persistent, localFolder, string(d.name)+".json")
		d.ledgerPath = path.Join(ledgerFolder, string(d.name)+".json")
		if err := a.moveSettings(d); err != nil {
			return nil, fmt.Errorf("documents: %s: %w", d.name, err)
		}
		if err := a.load(d); err != nil {
			return nil, fmt.Errorf("documents: %s: %w", d.name, err)
		}
	}
	return a, nil
}

// moveSettings gives the settings that earlier software kept as vic.RobotSettings, whatever the robot's species, their own name (infra/adr/0039): first
// the ledger, because a local copy must never be without the ledger of its version. Each rename is whole or not done, and the next start does what is left. If both
// names are there, earlier software ran again after this one; what it wrote is newer.
func (a *Agent) moveSettings(d *document) error {
	if d.name == jdocs.RobotSettings || !d.name.IsSettings() {
		return nil
	}
	for _, file := range []string{d.ledgerPath, d.localPath} {
		err := a.files.Rename(path.Join(path.Dir(file), string(jdocs.RobotSettings)+".json"), file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// load reads ledger and local copy. A damaged or missing local copy is made again from the last content shared with the cloud, or from
// the defaults; a damaged ledger counts as missing, and its bases are fetched again from the cloud's history.
func (a *Agent) load(d *document) error {
	b, _, err := a.files.Read(d.ledgerPath)
	if err == nil {
		d.ledger, err = parseLedger(b)
		if err != nil {
			a.cfg.Log.Warn("document ledger damaged; starting a new one", "doc", d.name, "err", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, _, err = a.files.Read(d.localPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if d.local, err = parseLocal(b); err == nil {
			return nil
		}
		a.cfg.Log.Warn("local copy of a document damaged; recreating it", "doc", d.name, "err", err)
	}
	last, ok := d.ledger.newest()
	if !ok {
		last = base{Jdoc: json.RawMessage(mask(d.defaults, "{}", d.localOnly))}
		if err := a.writeLedger(d, ledger{}.withBase(0, string(last.Jdoc))); err != nil {
			return err
		}
	}
	return a.writeLocal(d, localDoc{Version: last.Version, JSON: mask(string(last.Jdoc), d.defaults, d.localOnly)})
}

// writeLedger and writeLocal change memory only after the disk.
func (a *Agent) writeLedger(d *document, l ledger) error {
	b, err := indented(l)
	if err == nil {
		err = a.files.Write(d.ledgerPath, b)
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	d.ledger = l
	return nil
}

// writeLocal overwrites what others wrote into the file: refresh first, under the same lock.
func (a *Agent) writeLocal(d *document, l localDoc) error {
	l.DirtySec, l.FmtVersion = 0, max(l.FmtVersion, d.fmtVersion)
	if d.dirty(l) {
		l.DirtySec = uint64((d.saveAfter + time.Second - 1) / time.Second)
	}
	b, err := l.encode()
	if err == nil {
		err = a.files.Write(d.localPath, b)
	}
	d.seen = nil // another writer may be as quick as this one
	if err != nil {
		return fmt.Errorf("local copy: %w", err)
	}
	d.local = l
	return nil
}

// shared returns the local copy as the cloud gets it: fields that stay on the robot keep the base's values.
func (d *document) shared(l localDoc) string {
	b, ok := d.ledger.base(l.Version)
	if !ok || d.missing {
		b = "{}"
	}
	return mask(l.JSON, b, d.localOnly)
}

// dirty reports whether a local copy holds changes that the cloud does not. Without a base this is unknown until the next read.
func (d *document) dirty(l localDoc) bool {
	b, ok := d.ledger.base(l.Version)
	return d.missing || ok && !jdocs.Equal([]byte(b), []byte(d.shared(l)))
}

// mask returns text with the given fields as base has them.
func mask(text, base string, names []string) string {
	if len(names) == 0 {
		return text
	}
	m, b := fields(text), fields(base)
	for _, f := range names {
		if v, ok := b[f]; ok {
			m[f] = v
		} else {
			delete(m, f)
		}
	}
	return join(m)
}

// locked runs f holding mu, and releases it even on a panic: a recovered panic must not block the others.
func (a *Agent) locked(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// find returns the document of that name.
func (a *Agent) find(name jdocs.Name) (*document, error) {
	for _, d := range a.docs {
		if d.name == name {
			return d, nil
		}
	}
	return nil, errs.New(errs.NotFound, "document %.80q is not stored on this robot", name)
}

// Get returns a document as the robot has it, with defaults for absent fields (VEC-DOC-01).
func (a *Agent) Get(name jdocs.Name) (jdocs.Doc, error) {
	d, err := a.find(name)
	if err != nil {
		return jdocs.Doc{}, err
	}
	a.mu.Lock()
	l := d.local
	a.mu.Unlock()
	return jdocs.Doc{Version: l.Version, FmtVersion: l.FmtVersion, ClientMeta: l.ClientMeta, JSON: fill(l.JSON, d.defaults)}, nil
}

// Set changes fields of a document on the robot (VEC-DOC-13): checked, on disk when Set returns, pushed soon after. Names may be dotted
// (custom_eye_color.hue). An error of kind Invalid lists what is allowed; after any error nothing has changed.
func (a *Agent) Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) error {
	d, err := a.find(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.change(d, FromRobot, func(text string) (string, error) { return jdocs.SetFields(name, text, fields) })
}

// change writes a local change to the local copy and marks the time.
func (a *Agent) change(d *document, source Source, edit func(text string) (string, error)) error {
	var changes []Change
	var err error
	a.locked(func() {
		changes = a.refresh(d, false)
		var next string
		if next, err = edit(d.local.JSON); err == nil {
			_, err = compact([]byte(next)) // the result too must be within the limits
		}
		if err != nil || jdocs.Equal([]byte(next), []byte(d.local.JSON)) {
			return
		}
		old, l := d.local.JSON, d.local
		l.JSON = next
		if err = a.writeLocal(d, l); err == nil {
			changes = append(changes, changeOf(d.name, old, next, source)...)
			d.touched()
		}
	})
	a.tell(changes)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	a.wake.Set()
	return nil
}

// touched notes that a local change waits to be pushed.
func (d *document) touched() {
	if d.dirty(d.local) && d.dirtySince.IsZero() {
		d.dirtySince = time.Now()
	}
}

// changeOf returns the change from one text to another, if there is one.
func changeOf(name jdocs.Name, from, to string, source Source) []Change {
	was, is := fields(from), fields(to)
	changed := map[string]json.RawMessage{}
	for k, v := range is {
		if old, ok := was[k]; !ok || !jdocs.Equal(old, v) {
			changed[k] = v
		}
	}
	for k := range was {
		if _, ok := is[k]; !ok {
			changed[k] = nil
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return []Change{{name, changed, source}}
}

// tell calls OnChanged; the caller holds no lock.
func (a *Agent) tell(changes []Change) {
	for _, c := range changes {
		a.cfg.OnChanged(c)
	}
}

// Connected says that the cloud can be reached. Everything is asked for and pushed at once.
func (a *Agent) Connected() {
	a.mu.Lock()
	a.online = true
	a.flushAt = time.Time{} // counters first, so that they go along
	for _, d := range a.docs {
		d.want, d.urgent, d.notBefore, d.failures = true, true, time.Time{}, 0
	}
	for _, d := range a.owners {
		d.want, d.notBefore, d.failures = true, time.Time{}, 0
	}
	a.mu.Unlock()
	a.wake.Set()
}

// Disconnected says that the cloud cannot be reached: nothing is tried until Connected.
func (a *Agent) Disconnected() {
	a.mu.Lock()
	a.online = false
	a.mu.Unlock()
}

// Hint takes the cloud's versions (infra/api/hints). Documents that differ are read now.
func (a *Agent) Hint(versions map[string]uint64) {
	a.mu.Lock()
	for _, d := range a.docs {
		if v, ok := versions[string(d.name)]; ok && v != d.local.Version {
			d.want, d.notBefore = true, time.Time{}
		}
	}
	for _, d := range a.owners { // whatever the version: the owner may be another
		if _, ok := versions[string(d.name)]; ok {
			d.want, d.notBefore = true, time.Time{}
		}
	}
	a.mu.Unlock()
	a.wake.Set()
}

// Versions returns the version of each document, as last agreed with the cloud; 0: never.
func (a *Agent) Versions() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]uint64{}
	for _, d := range a.docs {
		out[string(d.name)] = d.local.Version
	}
	return out
}

// Dirty returns the documents with changes that the cloud has not accepted yet.
func (a *Agent) Dirty() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, d := range a.docs {
		if d.dirty(d.local) {
			out = append(out, string(d.name))
		}
	}
	return out
}

// Problems returns the reasons why documents are out of step.
func (a *Agent) Problems() []status.Problem {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []status.Problem
	for _, d := range a.docs {
		if d.problem != "" {
			out = append(out, status.Problem{Kind: status.KindDocuments, Code: "not_synced", Text: fmt.Sprintf("%s: %s", d.name, d.problem)})
		}
		if d.refused != "" {
			out = append(out, status.Problem{Kind: status.KindDocuments, Code: "edit_refused",
				Text: fmt.Sprintf("%s: an edit of the local copy was not taken: %s", d.name, d.refused)})
		}
	}
	return out
}

// AddStats adds to the lifetime counters (part of VEC-DOC-07). They reach the local copy hourly, at every connect and when Run ends (VEC-DOC-15).
// Deltas that are not finite numbers are left out.
func (a *Agent) AddStats(deltas map[string]float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, v := range deltas {
		if sum := a.added[k] + v; sum-sum == 0 { // not for infinities and NaN
			a.added[k] = sum
		}
	}
}

// FlushStats writes the added counters to the local copy.
func (a *Agent) FlushStats() error {
	a.mu.Lock()
	deltas := a.added
	a.added = map[string]float64{}
	a.flushAt = time.Now().Add(statsFlush)
	a.mu.Unlock()
	if len(deltas) == 0 {
		return nil
	}
	i := slices.IndexFunc(a.docs, func(d *document) bool { return d.counts })
	err := a.change(a.docs[i], FromRobot, func(text string) (string, error) {
		next, err := jdocs.AddStats([]byte(text), deltas)
		return string(next), err
	})
	if err != nil {
		a.AddStats(deltas) // nothing was written: keep them for later
	}
	return err
}

// Run keeps documents and cloud in step and reads what other programs write into the local copies, until ctx ends; then it flushes the counters.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- guarded(func() error {
			if a.cfg.Unwatched {
				<-ctx.Done()
				return nil
			}
			watch(ctx, a.cfg.Root, path.Join(a.cfg.Persistent, localFolder), a.cfg.Log, a.reload)
			return nil
		})
	}()
	err := guarded(func() error { return a.keep(ctx) })
	cancel()
	return errors.Join(err, <-done, a.FlushStats())
}

// guarded turns a panic into an error: one document must not end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("documents: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// keep runs the due exchanges in a loop.
func (a *Agent) keep(ctx context.Context) error {
	for {
		a.mu.Lock()
		flush := !time.Now().Before(a.flushAt)
		a.mu.Unlock()
		if flush {
			if err := a.FlushStats(); err != nil {
				a.cfg.Log.WarnContext(ctx, "counters not saved", "err", err)
			}
		}
		for _, d := range a.docs {
			if a.due(d, time.Now()) {
				a.exchange(ctx, d)
			}
		}
		for _, d := range a.owners {
			a.look(ctx, d)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-time.After(time.Until(a.next())):
		}
	}
}
