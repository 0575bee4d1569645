package mind

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
)

// motions lists the body's motions; none if it has none.
func (m *Mind) motions(ctx context.Context) ([]mindlink.Clip, error) {
	if m.cfg.Motions == nil {
		return nil, nil
	}
	all, err := m.cfg.Motions.List(ctx)
	if errs.CodeOf(err) == codeUnable {
		return nil, nil
	}
	return all, err
}

// codeUnable: the body cannot do it, now and later.
const codeUnable = "unable"

func errNoMotions() error {
	return errs.Coded(errs.Invalid, codeUnable, "this body has no joints that move by motions")
}

// Body returns how the body is made. See mindlink.Mind.
func (m *Mind) Body(ctx context.Context) (motionwire.Body, error) {
	if m.cfg.Motions == nil {
		return motionwire.Body{}, errNoMotions()
	}
	if _, err := m.body(ctx); err != nil { // its model is known from then on
		return motionwire.Body{}, err
	}
	return m.cfg.Motions.Body(ctx)
}

// Judge checks a motion. See mindlink.Mind.
func (m *Mind) Judge(ctx context.Context, d mindlink.Draft) (motionwire.Verdict, error) {
	if m.cfg.Motions == nil {
		return motionwire.Verdict{}, errNoMotions()
	}
	if !motionwire.IsName(d.Name) || len(d.File) > motionwire.MaxFile {
		return motionwire.Verdict{}, errs.Coded(errs.Invalid, "invalid", "motion %.60q of %d bytes: expected a name of lower-case letters, and at most %d bytes", d.Name, len(d.File), motionwire.MaxFile)
	}
	return m.cfg.Motions.Judge(ctx, d.Name, d.File)
}

// move does a motion of the body. An error says why it did not begin.
func (m *Mind) move(ctx context.Context, name string, r mindlink.Request, tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	if m.cfg.Motions == nil {
		return e, errs.Coded(errs.Invalid, codeUnable, "motion %.60q: this body has no library of motions", name)
	}
	level := levels[r.Level]
	if err := m.may(ctx, &r, level); err != nil {
		return e, err
	}
	plan, err := m.cfg.Motions.Plan(ctx, name)
	if err != nil {
		return e, coreError(err)
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &turn{name: cmp.Or(r.Clip, name), program: r.Program, level: level, cancel: cancel, ended: make(chan ending, 1)}
	inerr := m.in(ctx, func(now time.Duration) {
		if err = m.mayNow(&r, t.level); err != nil {
			return
		}
		if m.turn != nil {
			m.end(now, ending{why: t.name + " plays instead", by: r.Program})
		}
		if t.lock, err = m.locks.Take(t.name, t.level, motors); err == nil {
			m.turn = t
		}
	})
	if err = cmp.Or(inerr, err); err != nil {
		return e, err
	}
	loops, span := max(1, r.Loops), plan.Span
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		err := plan.Do(run, priority(&r))
		for n := 1; n < loops && err == nil; n++ { // from where the one before ended
			if plan, err = m.cfg.Motions.Plan(run, name); err == nil {
				err = plan.Do(run, priority(&r))
			}
		}
		end := ending{done: err == nil}
		if err != nil {
			end.why = fmt.Sprint(coreError(err))
		}
		_ = m.in(context.WithoutCancel(ctx), func(now time.Duration) { m.stop(now, t, end) })
	}()
	end, at := m.follow(ctx, t, mindlink.Began{Clip: t.name, SpanMS: int64(loops) * span.Milliseconds()}, tell)
	cancel()
	<-moved
	return ended(t, end, at, nil), nil
}
