package alert

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/proportion"
)

// Vanished is the kind of an alert about robots of a release that went offline, more than usual.
const Vanished = "vanished"

// Own defaults for robots that vanish.
const (
	vanishWithin = time.Hour // they went so lately
	vanishGrace  = 2 * time.Minute
	vanishFor    = 24 * time.Hour // an alert about robots that stay away ends then
	vanishRobots = 10             // at least so many, and
	vanishShare  = 0.01           // at least this share of the release's robots, and so much above what is usual
	usualUnknown = 0.05           // share that counts as usual until there are usualDays
	usualDays    = 3
	usualEvery   = 10 * time.Minute
)

// Presence tells of robots that went offline; *registrypg.Store is one.
type Presence interface {
	// Gone counts robots by species and release: those present, those that went within a time but not within the grace, and of releases in since those that went about that time.
	Gone(ctx context.Context, within, grace time.Duration, since map[string]time.Time) ([]registry.Gone, error)
}

// History keeps how many robots usually go offline at an hour of the day; *alertpg.Store is one.
type History interface {
	// Usual returns, by species, the greatest share of robots that went offline within an hour about this time of the days before, and on how many days that was looked at.
	Usual(ctx context.Context) (map[string]Usual, error)
	// Keep notes counts by species, once in usualEvery.
	Keep(ctx context.Context, every time.Duration, species []string, gone, base []int) error
}

// Usual is the greatest share of some days.
type Usual struct {
	Share float64
	Days  int
}

// vanished returns the releases whose robots went offline in a number that is neither usual for the hour nor for other releases, and those that are so much away that nothing
// else about them can be told. An alert fires for at least vanishRobots and vanishShare of the release's robots, if either
//
//   - the lower Wilson bound of their share is above the greatest share of this hour on the days before by vanishShare, or
//   - the lower bound of the difference to robots of the same species on other releases (excess) is above vanishShare.
//
// It lasts while half as many of the robots that vanished when it fired are still away, for vanishFor at most.
func (s *Service) vanished(ctx context.Context) (found []Found, away []string, err error) {
	if s.Presence == nil {
		return nil, nil, nil
	}
	list, err := s.store.Alerts(ctx, MaxListed)
	if err != nil {
		return nil, nil, err
	}
	firing := map[string]time.Time{}
	for _, a := range list {
		if a.Kind == Vanished && a.Place == "" && a.Resolved == nil {
			firing[a.Release] = a.Since
		}
	}
	all, err := s.Presence.Gone(ctx, vanishWithin, vanishGrace, firing)
	if err != nil {
		return nil, nil, err
	}
	usual, err := s.History.Usual(ctx)
	if err != nil {
		return nil, nil, err
	}
	species := map[string]registry.Gone{}
	loud := map[string]bool{} // species with an alert, whose hour is not usual
	for i, g := range all {
		sum := species[g.Species]
		sum.Present, sum.Gone = sum.Present+g.Present, sum.Gone+g.Gone
		species[g.Species] = sum
		if g.Gone > g.Present {
			away = append(away, g.Release)
		}
		if slices.ContainsFunc(all[:i], func(o registry.Gone) bool { return o.Release == g.Release }) {
			continue // a release of two species is one alert
		}
		var own, others registry.Gone
		share := 0.0
		for _, o := range all {
			if o.Release == g.Release {
				own.Present, own.Gone, own.Then = own.Present+o.Present, own.Gone+o.Gone, own.Then+o.Then
				u := usual[o.Species]
				if u.Days < usualDays {
					u.Share = usualUnknown
				}
				share = max(share, u.Share)
			} else if o.Species == g.Species {
				others.Present, others.Gone = others.Present+o.Present, others.Gone+o.Gone
			}
		}
		base := own.Present + own.Gone
		floor := max(vanishRobots, int(vanishShare*float64(base)))
		since, is := firing[g.Release]
		holds := is && time.Since(since) < vanishFor && own.Then >= floor/2
		low, _ := proportion.Share(own.Gone, base, confidence)
		_, above := excess(own.Gone, base, others.Gone, others.Present+others.Gone)
		fires := own.Gone >= floor && (low > share+vanishShare || above > vanishShare)
		if !holds && !fires {
			continue
		}
		for _, o := range all {
			if o.Release == g.Release {
				loud[o.Species] = true
			}
		}
		n := max(own.Gone, own.Then)
		found = append(found, Found{Release: g.Release, Kind: Vanished, Robots: n, Present: own.Present + n, Fires: fires,
			Reason: fmt.Sprintf("%d of %d robots on release %s went offline; usual is at most %.3g %% in an hour", n, own.Present+n, cmp.Or(g.Release, "unknown"), 100*share)})
	}
	var names []string
	var gone, base []int
	for name, g := range species {
		if !loud[name] && g.Present+g.Gone > 0 {
			names, gone, base = append(names, name), append(gone, g.Gone), append(base, g.Present+g.Gone)
		}
	}
	return found, away, s.History.Keep(ctx, usualEvery, names, gone, base)
}
