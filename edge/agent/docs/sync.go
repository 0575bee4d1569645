package docs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"kennel/infra/errs"
	"kennel/jdocs"
)

// maxRounds bounds one exchange. A document that needs more is one that others keep changing; the next try continues.
const maxRounds = 8

// Sync exchanges every document with the cloud now and returns when they are in step, or why they are not.
func (a *Agent) Sync(ctx context.Context) error {
	var err error
	for _, d := range a.docs {
		a.mu.Lock()
		d.want = true
		a.mu.Unlock()
		err = errors.Join(err, a.sync(ctx, d))
	}
	return err
}

// sync brings one document in step: it asks the cloud if that is due, then pushes while there is something to push.
func (a *Agent) sync(ctx context.Context, d *document) error {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	a.mu.Lock()
	_, known := d.ledger.base(d.local.Version)
	read := d.want || !known || !time.Now().Before(d.getAt)
	a.mu.Unlock()
	for range maxRounds {
		if read {
			if err := a.pull(ctx, d); err != nil {
				return fmt.Errorf("%s: read: %w", d.name, err)
			}
		}
		status, pushed, err := a.push(ctx, d)
		switch {
		case err != nil:
			return fmt.Errorf("%s: write: %w", d.name, err)
		case !pushed:
			return nil
		case status == jdocs.RejectedBadFmtVersion:
			return errs.New(errs.Invalid, "%s: the format in the cloud is newer than this robot's", d.name)
		}
		read = status == jdocs.RejectedBadDocVersion
	}
	return errs.New(errs.Unavailable, "%s: changed by others during each attempt", d.name)
}

// pull reads the document from the cloud and merges it.
func (a *Agent) pull(ctx context.Context, d *document) error {
	a.mu.Lock()
	d.want = false
	mine := d.local.Version
	if _, known := d.ledger.base(mine); !known {
		mine = 0 // the text is needed for a base
	}
	a.mu.Unlock()

	tctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	results, err := a.cfg.Remote.Read(tctx, []jdocs.Item{{Name: d.name, MyVersion: mine}})
	if err == nil && len(results) != 1 {
		err = errs.New(errs.Corrupt, "%d results, want 1", len(results))
	}
	if err == nil && results[0].Status == jdocs.Changed {
		err = a.take(tctx, d, results[0].Doc)
	}
	var changes []Change
	a.locked(func() {
		if err != nil {
			d.want = true
			return
		}
		now := time.Now()
		d.missing, d.getAt = results[0].Status == jdocs.NotFound, now.Add(d.getEvery)
		if d.local.CloudAccessed { // the time alone is not worth a write to the flash
			d.local.CloudGetTime = uint64(now.Unix())
			return
		}
		changes = a.refresh(d, false)
		l := d.local
		l.CloudAccessed, l.CloudGetTime = true, uint64(now.Unix())
		err = a.writeLocal(d, l)
	})
	a.tell(changes)
	return err
}

// take merges the cloud's version into the local copy. syncing is held: the local version changes nowhere else.
func (a *Agent) take(ctx context.Context, d *document, remote jdocs.Doc) error {
	text, err := compact([]byte(remote.JSON))
	if err != nil || remote.Version == 0 {
		return errs.New(errs.Corrupt, "version %d in the cloud: %v", remote.Version, err)
	}
	remote.JSON = text
	if err := a.recognize(ctx, d, remote); err != nil {
		return err
	}
	a.mu.Lock()
	v := d.local.Version
	common, known := d.ledger.base(v)
	a.mu.Unlock()
	if known && v == remote.Version {
		return nil // it was our own
	}
	if !known && v != 0 && v != remote.Version {
		// The ledger is lost; the cloud's history may know what this version was.
		rev, _, found, err := a.cfg.Remote.Revision(ctx, d.name, v)
		if err != nil {
			return err
		}
		if found {
			common, err = compact([]byte(rev.JSON))
			known = err == nil
		}
	}
	var changes []Change
	a.locked(func() {
		var merged []Change
		changes = a.refresh(d, false)
		merged, err = a.mergeIn(d, remote, common, known)
		changes = append(changes, merged...)
	})
	a.tell(changes)
	return err
}

// recognize finds out whether a write of ours whose answer was lost is in the cloud, and takes it for the common ground. The words alone
// prove nothing, since both sides may have counted alike: the cloud must say that they are ours.
func (a *Agent) recognize(ctx context.Context, d *document, remote jdocs.Doc) error {
	a.mu.Lock()
	l, v := d.ledger, d.local.Version
	a.mu.Unlock()
	if !l.unsettled(v) || remote.Version <= v {
		return nil
	}
	oldest := v + 1 // what a write on v becomes; a document created again may be any version since
	newest := oldest
	if l.created(v) {
		newest, oldest = remote.Version, max(oldest, remote.Version-min(remote.Version, lookBack))
	}
	for version := newest; version >= oldest; version-- {
		rev, mine, found, err := a.cfg.Remote.Revision(ctx, d.name, version)
		if err != nil {
			return err
		}
		if !found || !mine || !l.sent(v, rev.JSON) {
			continue
		}
		text, err := compact([]byte(rev.JSON))
		if err != nil {
			return errs.New(errs.Corrupt, "version %d in the cloud: %v", version, err)
		}
		return a.accepted(d, version, text)
	}
	return nil
}

// mergeIn decides what the local copy becomes now that the cloud has remote. common is the content both had at the local version, if
// known. The caller holds mu.
func (a *Agent) mergeIn(d *document, remote jdocs.Doc, common string, known bool) ([]Change, error) {
	l := d.local
	was := l.JSON
	theirs := remote.JSON
	switch {
	case l.Version == remote.Version && !known:
		// The ledger was lost, but the local copy was made from this version.
		common = remote.JSON
	case remote.Version < l.Version:
		// The cloud lost versions (restored from an older backup): its present content becomes the base of ours.
		a.cfg.Log.Warn("older document version in the cloud; keeping the robot's", "doc", d.name, "version", l.Version, "cloud", remote.Version)
		common, theirs = remote.JSON, remote.JSON
	case l.Version == 0 && d.counts:
		common = "" // after a wipe: all that was counted since is new
	case !known:
		common = mask(l.JSON, "{}", d.localOnly) // the changes made here are unknown: the cloud's copy wins (after a wipe too)
		fallthrough
	case l.Version == 0:
		theirs = fill(remote.JSON, mask(l.JSON, "{}", d.localOnly)) // fields of a newer release stay
	}
	ground := common
	if ground == "" {
		ground = "{}"
	}
	ours := mask(l.JSON, ground, d.localOnly)
	merged, conflicts, err := d.merge([]byte(common), []byte(ours), []byte(theirs))
	if err != nil {
		return nil, err
	}
	if len(conflicts) > 0 {
		a.cfg.Log.Info("same fields changed on robot and in cloud; keeping the robot's later change", "doc", d.name, "fields", conflicts)
	}
	text, err := compact(merged)
	if err != nil {
		return nil, fmt.Errorf("merged: %w", err)
	}
	// A field that stays on the robot keeps its local value, unless the cloud changed it on purpose.
	for _, f := range d.localOnly {
		if fieldEqual(ground, remote.JSON, f) {
			text = mask(text, l.JSON, []string{f})
		}
	}
	if err := a.writeLedger(d, d.ledger.withBase(remote.Version, remote.JSON)); err != nil {
		return nil, err
	}
	l.JSON, l.Version, l.FmtVersion = text, remote.Version, max(remote.FmtVersion, l.FmtVersion)
	l.CloudAccessed, l.CloudGetTime = true, uint64(time.Now().Unix())
	d.missing = false
	if err := a.writeLocal(d, l); err != nil {
		return nil, err
	}
	d.settle()
	return changeOf(d.name, was, text, FromCloud), nil
}

// settle keeps the time of the oldest change that still waits.
func (d *document) settle() {
	if !d.dirty(d.local) {
		d.dirtySince, d.urgent = time.Time{}, false
	}
}

// fill returns text with the fields of extra that it does not have.
func fill(text, extra string) string {
	all := fields(extra)
	maps.Copy(all, fields(text))
	return join(all)
}

func fieldEqual(a, b, field string) bool {
	v, inX := fields(a)[field]
	w, inY := fields(b)[field]
	return inX == inY && (!inX || jdocs.Equal(v, w))
}

// push writes the document to the cloud if it is dirty. pushed is false if there was nothing to do.
func (a *Agent) push(ctx context.Context, d *document) (status jdocs.WriteStatus, pushed bool, err error) {
	var changes []Change
	var doc jdocs.Doc
	dirty := false
	a.locked(func() {
		changes = a.refresh(d, false)
		if dirty = d.dirty(d.local); !dirty {
			d.settle()
			return
		}
		l := d.local
		doc = jdocs.Doc{Version: l.Version, FmtVersion: max(l.FmtVersion, d.fmtVersion), ClientMeta: l.ClientMeta, JSON: d.shared(l)}
		if d.missing {
			doc.Version = 0
		}
		created := doc.Version == 0
		if !d.ledger.sent(l.Version, doc.JSON) || created && !d.ledger.created(l.Version) {
			err = a.writeLedger(d, d.ledger.withSent(l.Version, doc.JSON, created))
		}
	})
	a.tell(changes)
	if err != nil || !dirty {
		return 0, false, err
	}
	tctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	res, err := a.cfg.Remote.Write(tctx, d.name, doc)
	if err != nil {
		return 0, false, err
	}
	if res.Status == jdocs.Accepted {
		if err := a.accepted(d, res.Latest, doc.JSON); err != nil {
			return 0, false, err
		}
	}
	return res.Status, true, nil
}

// accepted notes that the cloud's version is now text, which we sent. The local copy may have changed in between.
func (a *Agent) accepted(d *document, version uint64, text string) error {
	var changes []Change
	var err error
	a.locked(func() {
		changes = a.refresh(d, false)
		if err = a.writeLedger(d, d.ledger.withBase(version, text)); err != nil {
			return
		}
		l := d.local
		l.Version, l.CloudAccessed = version, true
		d.missing = false
		if err = a.writeLocal(d, l); err == nil {
			d.settle()
		}
	})
	a.tell(changes)
	if err == nil {
		a.cfg.OnPushed(d.name, version)
	}
	return err
}
