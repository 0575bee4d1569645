package mindapp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
)

// Motions returns the motions of the bodies that have some: AIBOs have a library, and bodies with a tail or a neck a few gestures.
func Motions(root *os.Root, link *corelink.Client, core *coreclient.Client) mind.Motions {
	return &library{root, link, core}
}

// library has the motions of an AIBO's model, and those that its owner uploaded. Of two with one name the owner's counts.
type library struct {
	root *os.Root
	link *corelink.Client
	core *coreclient.Client
}

// model returns the model of the robot. The error's code is "unable" only if it has another body.
func (l *library) model() (aibo.Model, error) {
	hello, _ := l.link.Hello() // without robotd it has no model
	i := slices.IndexFunc(aibo.Models, func(m aibo.Model) bool { return hello.Body.Species == "aibo" && m.String() == hello.Body.Model })
	switch {
	case i >= 0:
		return aibo.Models[i], nil
	case hello.Body.Species == "": // robotd has not opened it yet, or this program has not heard so yet
		return 0, errs.Coded(errs.Unavailable, "core_lost", "the robot's body is not known yet; try again in a moment")
	}
	return 0, errNoMotions()
}

// owns returns the names of the owner's motions.
func (l *library) owns() (names []string) {
	entries, _ := fs.ReadDir(l.root.FS(), mindlink.MotionsDir) // there is none before the first upload
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), mindlink.MotionsEnding); is && motionwire.IsName(name) {
			names = append(names, name)
		}
	}
	return names
}

// load returns a motion.
func (l *library) load(m aibo.Model, name string) (*mtn.File, error) {
	if motionwire.IsName(name) {
		b, err := robotfs.ReadFile(l.root, path.Join(mindlink.MotionsDir, name+mindlink.MotionsEnding))
		if err == nil {
			f, found := motions.Open(b, name, m)
			if f == nil {
				return nil, errs.Coded(errs.Corrupt, "corrupt", "motion %s: %w", name, found[len(found)-1])
			}
			return f, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	f, err := motions.Load(m, name)
	if errors.Is(err, motions.ErrUnknown) {
		return nil, errs.Coded(errs.NotFound, "not_found", "motion %.60q: this robot has none of that name; the list of its animations says which there are", name)
	}
	return f, err
}

// List implements mind.Motions.
func (l *library) List(ctx context.Context) (out []mindlink.Clip, err error) {
	m, err := l.model()
	if err != nil {
		return listGestures(ctx, l.core)
	}
	names := append(motions.Library(), l.owns()...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if f, err := l.load(m, name); err == nil { // one that a body of before was given is not there
			out = append(out, mindlink.Clip{Name: name, SpanMS: f.Duration().Milliseconds(), Tracks: []string{"joints"}})
		}
	}
	return out, nil
}

// Plan implements mind.Motions. The error of a plan has the code "refused".
func (l *library) Plan(ctx context.Context, name string) (p mind.Planned, err error) {
	m, err := l.model()
	if err != nil {
		return planGesture(ctx, l.core, name)
	}
	f, err := l.load(m, name)
	if err != nil {
		return p, err
	}
	at, err := motions.Where(ctx, l.core, m)
	if err != nil {
		return p, err
	}
	plan, err := motions.NewPlan(f, m, at, statics.Upright)
	if err != nil {
		return p, errs.Coded(errs.Conflict, "refused", "motion %s: %w", name, err)
	}
	return mind.Planned{Span: plan.Span(), Do: func(ctx context.Context, p claim.Priority) error {
		return plan.Perform(ctx, l.core, p, func(string) {})
	}}, nil
}

// Body implements mind.Motions.
func (l *library) Body(context.Context) (motionwire.Body, error) {
	m, err := l.model()
	if err != nil {
		return motionwire.Body{}, err
	}
	return motions.Describe(m)
}

// Judge implements mind.Motions. No owner's motion takes the name of one of ours.
func (l *library) Judge(_ context.Context, name string, file []byte) (motionwire.Verdict, error) {
	m, err := l.model()
	if err != nil {
		return motionwire.Verdict{}, err
	}
	v := motions.Judge(file, name, m)
	if slices.Contains(motions.Library(), name) {
		v.Kept, v.Why = false, name+" is the name of a motion that the robot has anyway; choose another one"
	}
	return v, nil
}
