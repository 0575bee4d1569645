package mindapp

import (
	"context"
	"errors"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/statics"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/infra/errs"
	"slices"
)

// Motions does the motions of the bodies that have a library of some: AIBOs.
func Motions(link *corelink.Client, core *coreclient.Client) func(context.Context, string, func(string)) error {
	return library{link, core}.motion
}

// library is the one of an AIBO's model.
type library struct {
	link *corelink.Client
	core *coreclient.Client
}

// motion does one motion until it has ended.
func (l library) motion(ctx context.Context, name string, tell func(string)) error {
	hello, _ := l.link.Hello() // without robotd it has no model
	i := slices.IndexFunc(aibo.Models, func(m aibo.Model) bool { return hello.Body.Species == "aibo" && m.String() == hello.Body.Model })
	if i < 0 {
		return errs.Coded(errs.Invalid, "unable", "motion %.60q: this body has no library of motions", name)
	}
	f, err := motions.Load(aibo.Models[i], name)
	if errors.Is(err, motions.ErrUnknown) {
		return errs.Coded(errs.NotFound, "not_found", "%s", err)
	} else if err != nil {
		return err
	}
	at, err := motions.Where(ctx, l.core, aibo.Models[i])
	if err != nil {
		return err
	}
	plan, err := motions.NewPlan(f, aibo.Models[i], at, statics.Upright)
	if err != nil {
		return err
	}
	return plan.Perform(ctx, l.core, tell)
}
