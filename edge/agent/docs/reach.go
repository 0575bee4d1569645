package docs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/jdocs"
)

// Bounds of a change by a program; own defaults.
const (
	pushFor  = 800 * time.Millisecond // for the cloud's answer; without one the change is pushed later
	tryWrite = 5                      // times, while other writers of an account's document are first
)

// Reach gives programs at the robot its documents and its owner's. The robot's own are there without the cloud; vic.AccountSettings and
// vic.UserEntitlements are read and written in the cloud, and read from the robot's copy while there is none. Safe for concurrent use.
type Reach struct {
	agent *Agent
}

// Reach returns the documents that programs reach.
func (a *Agent) Reach() *Reach { return &Reach{a} }

// Get returns a document. The owner's have version 0 if there is no owner or they never set anything, and are Unavailable without the cloud if the robot has
// no copy. Fields that are absent have the defaults of the control files (VEC-DOC-04), where the robot keeps copies.
func (r *Reach) Get(ctx context.Context, name jdocs.Name) (jdocs.Doc, error) {
	if !name.OfAccount() {
		return r.agent.Get(name)
	}
	own := r.agent.owner(name)
	d, err := r.read(ctx, name)
	if here, ok := r.agent.copyOf(own); err != nil && ok && errs.KindOf(err) == errs.Unavailable {
		d, err = here, nil
	}
	if err != nil || own == nil {
		return d, err
	}
	here, _ := r.agent.copyOf(own)
	d.JSON = fill(mask(d.JSON, here.JSON, own.localOnly), own.defaults)
	return d, nil
}

func (r *Reach) read(ctx context.Context, name jdocs.Name) (jdocs.Doc, error) {
	if !r.agent.connected() {
		return jdocs.Doc{}, errs.Coded(errs.Unavailable, "no_cloud", "%s is in the cloud, and there is no connection to it now", name)
	}
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	all, err := r.agent.cfg.Remote.Read(ctx, []jdocs.Item{{Name: name}})
	switch {
	case err != nil:
		return jdocs.Doc{}, err
	case len(all) != 1:
		return jdocs.Doc{}, errs.New(errs.Corrupt, "read %s: %d answers", name, len(all))
	case all[0].Status == jdocs.NotFound:
		d := jdocs.Default(name)
		d.Version = 0
		r.agent.keepCopy(r.agent.owner(name), d)
		return d, nil
	}
	d := all[0].Doc
	if d.JSON, err = compact([]byte(d.JSON)); err != nil {
		return jdocs.Doc{}, errs.New(errs.Corrupt, "%s in the cloud: %w", name, err)
	}
	r.agent.keepCopy(r.agent.owner(name), d)
	return d, nil
}

// Set changes fields of a document and returns it. One of the robot's is on disk then, and in the cloud if that answers at once, so that its version is the
// next one; otherwise it is pushed as soon as the cloud can be reached. One of the owner's is in the cloud. Errors are Invalid with what is allowed, Denied
// for a robot without an owner, and Unavailable; after any of these nothing has changed, but for a cloud that was lost before it answered.
func (r *Reach) Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Doc, error) {
	if name.OfAccount() {
		return r.write(ctx, name, fields)
	}
	if err := r.agent.Set(ctx, name, fields); err != nil {
		return jdocs.Doc{}, err
	}
	if d, err := r.agent.find(name); err == nil && r.agent.connected() {
		now, cancel := context.WithTimeout(ctx, pushFor)
		_ = r.agent.sync(now, d) // Run tries again
		cancel()
	}
	return r.agent.Get(name)
}

// write changes a document of the owner while other writers are first.
func (r *Reach) write(ctx context.Context, name jdocs.Name, change map[string]json.RawMessage) (jdocs.Doc, error) {
	own := r.agent.owner(name)
	change, err := r.agent.stays(own, change)
	if err != nil {
		return jdocs.Doc{}, err
	}
	if len(change) == 0 && own != nil { // all of it stays here
		d, _ := r.agent.copyOf(own)
		return d, nil
	}
	for range tryWrite {
		d, err := r.read(ctx, name)
		if err != nil {
			return jdocs.Doc{}, err
		}
		next, err := jdocs.SetFields(name, d.JSON, oneSpelling(d.JSON, change))
		if err != nil {
			return jdocs.Doc{}, err
		}
		if d.Version > 0 && jdocs.Equal([]byte(next), []byte(d.JSON)) {
			return d, nil
		}
		d.JSON = next
		limit, cancel := context.WithTimeout(ctx, tryFor)
		result, err := r.agent.cfg.Remote.Write(limit, name, d)
		cancel()
		switch {
		case err != nil:
			return jdocs.Doc{}, err
		case result.Status == jdocs.Accepted:
			d.Version = result.Latest
			r.agent.keepCopy(own, d)
			return d, nil
		case result.Status == jdocs.RejectedBadFmtVersion:
			return jdocs.Doc{}, errs.New(errs.Unavailable, "%s has a newer format than this robot writes", name)
		}
	}
	return jdocs.Doc{}, errs.New(errs.Unavailable, "%s: other writers were first %d times; try again", name, tryWrite)
}

// oneSpelling returns change, and removes fields of the document that are the same but for their case (VEC-DOC-05).
func oneSpelling(doc string, change map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range change {
		out[name] = v
	}
	var was map[string]json.RawMessage
	_ = json.Unmarshal([]byte(doc), &was) // SetFields reports the error
	for name := range was {
		small := strings.ToLower(name)
		if _, given := change[small]; given && name != small {
			out[name] = json.RawMessage("null")
		}
	}
	return out
}

// connected reports whether the cloud can be reached.
func (a *Agent) connected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.online
}
