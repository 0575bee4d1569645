package filter

import (
	"context"
	"fmt"
	"slices"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Sources answers the questions of terms about other data. A nil one refuses its key, of kind Invalid; for words it is passed over.
type Sources struct {
	// Cohort returns the filter of a saved cohort; NotFound.
	Cohort func(ctx context.Context, name string) (Filter, error)
	// Named returns, for each of the texts, the robots whose owners call them by a name with that text in it.
	Named func(ctx context.Context, texts []string) (map[string][]thing.ID, error)
	// OwnedBy returns the robots of people whose e-mail has that text in it. It refuses callers who may not know, of kind Denied.
	OwnedBy func(ctx context.Context, text string) ([]thing.ID, error)
}

// A filter's cost bounds the work of one question. An alternative costs 1; one that is searched for within texts costs textCost; a cohort costs
// what its filter costs, wherever it is named. The bound lets 32 words pass, and cohorts of a few hundred ids.
const (
	MaxCost  = 512
	textCost = 8
)

// maxDepth is how deep cohorts may name cohorts.
const maxDepth = 4

// Resolve returns the filter with the answers of others filled in: what Match and the database need. It refuses a filter that costs more than
// MaxCost (Invalid "filter_cost") before it asks anything but which cohorts there are.
func (f Filter) Resolve(ctx context.Context, src Sources) (Filter, error) {
	r := resolver{src: src, cohorts: map[string]*weighed{}, named: map[string][]thing.ID{}, owned: map[string][]thing.ID{}}
	w, err := r.weigh(ctx, f)
	if err != nil {
		return Filter{}, err
	}
	if w.cost > MaxCost {
		return Filter{}, errs.Coded(errs.Invalid, "filter_cost",
			"filter %.200q costs %d: want at most %d; each word, name and owner costs %d, every other value 1, a cohort as much as its filter. Use fewer of them, or tag the robots",
			f.Nameless(), w.cost, MaxCost, textCost)
	}
	if len(r.texts) > 0 && src.Named != nil {
		slices.Sort(r.texts)
		if r.named, err = src.Named(ctx, slices.Compact(r.texts)); err != nil {
			return Filter{}, fmt.Errorf("filter %s: %w", f, err)
		}
	}
	return r.fill(ctx, f)
}

// weighed is a cohort's filter with its cost and how deep cohorts name cohorts below it.
type weighed struct {
	Filter
	cost, depth int
}

type resolver struct {
	src          Sources
	cohorts      map[string]*weighed // nil while it is being weighed
	texts        []string            // that Named is asked about
	named, owned map[string][]thing.ID
}

// weigh finds the cost of a filter, reading each cohort once. The cost of nested cohorts grows without their being put together.
func (r *resolver) weigh(ctx context.Context, f Filter) (w weighed, err error) {
	w.Filter = f
	for _, t := range f.Terms {
		for _, v := range t.Values {
			cost := 1
			switch t.Key {
			case Word, Name, Owner:
				cost = textCost
				if t.Key == Name && r.src.Named == nil {
					err = errs.New(errs.Invalid, "names that owners gave cannot be searched here")
				}
				if t.Key == Owner && r.src.OwnedBy == nil {
					err = errs.New(errs.Invalid, "owners cannot be searched here")
				} else if t.Key != Owner {
					r.texts = append(r.texts, v.Text)
				}
			case Cohort:
				var sub *weighed
				if sub, err = r.cohort(ctx, v.Text); err == nil {
					cost, w.depth = max(1, sub.cost), max(w.depth, sub.depth+1)
				}
			}
			if w.depth > maxDepth {
				err = tooDeep()
			}
			if err != nil {
				return w, fmt.Errorf("filter %s: %w", t, err)
			}
			w.cost = min(w.cost+cost, 1e9)
		}
	}
	return w, nil
}

func tooDeep() error {
	return errs.New(errs.Invalid, "cohorts refer to each other more than %d levels deep, or in a cycle", maxDepth)
}

func (r *resolver) cohort(ctx context.Context, name string) (*weighed, error) {
	known, ok := r.cohorts[name]
	switch {
	case known != nil:
		return known, nil
	case ok:
		return nil, tooDeep()
	case r.src.Cohort == nil:
		return nil, errs.New(errs.Invalid, "cohorts cannot be used here")
	}
	r.cohorts[name] = nil
	f, err := r.src.Cohort(ctx, name)
	if err != nil {
		return nil, err
	}
	w, err := r.weigh(ctx, f)
	r.cohorts[name] = &w
	return &w, err
}

// fill returns the filter with cohorts and robots in place.
func (r *resolver) fill(ctx context.Context, f Filter) (Filter, error) {
	out := Filter{slices.Clone(f.Terms)}
	for i := range out.Terms {
		t := &out.Terms[i]
		t.Subs, t.Things = nil, nil
		for _, v := range t.Values {
			var err error
			switch t.Key {
			case Cohort:
				var sub Filter
				sub, err = r.fill(ctx, r.cohorts[v.Text].Filter)
				t.Subs = append(t.Subs, sub)
			case Name, Word:
				t.Things = append(t.Things, r.named[v.Text]...)
			case Owner:
				ids, asked := r.owned[v.Text]
				if !asked {
					ids, err = r.src.OwnedBy(ctx, v.Text)
					r.owned[v.Text] = ids
				}
				t.Things = append(t.Things, ids...)
			}
			if err != nil {
				return Filter{}, fmt.Errorf("filter %s: %w", t, err)
			}
		}
		slices.Sort(t.Things)
	}
	return out, nil
}
