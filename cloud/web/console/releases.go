package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/cloud/updates/artifact"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// Releases is the pages' access to releases and to what robots should run; *ota.Service is one.
type Releases interface {
	Releases(ctx context.Context, species thing.Species) ([]ota.Release, error)
	Wishes(ctx context.Context) ([]ota.Wish, error)
	AddRelease(ctx context.Context, r ota.Release) error
	SetDesired(ctx context.Context, id thing.ID, v ota.Version, by string) (ota.Desired, error)
	SetSpeciesDesired(ctx context.Context, species thing.Species, v ota.Version, by string) (ota.Desired, error)
}

// Archives is the pages' access to the archives of releases and to channels; *artifact.Service is one.
type Archives interface {
	List(ctx context.Context, species thing.Species, v ota.Version) ([]artifact.Artifact, error)
	Channels(ctx context.Context, species thing.Species) ([]artifact.Channel, error)
	SetChannel(ctx context.Context, c artifact.Channel) (artifact.Channel, error)
}

type releasesView struct {
	able
	said
	Rows     []releaseView
	Wishes   []wishView
	Species  []thing.Species
	Channels []artifact.Channel
	Names    []string // of channels
	Offers   []chip   // releases that a channel can offer, or none of a species
	Others   []chip   // versions that robots run and that are no known release
}

type releaseView struct {
	ota.Release
	Running  int    // robots that say they run it
	Address  string // of these
	Wanted   []string
	Archives []artifact.Artifact
}

type wishView struct {
	ota.Wish
	Place string // address of the robot, or of the species' robots
	Kind  thing.Species
}

// releases lists the known releases: who runs them, and who should.
func (c *console) releases(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
	known, err := c.Releases.Releases(ctx, "")
	if err != nil {
		return "", frame{}, err
	}
	wishes, err := c.Releases.Wishes(ctx)
	if err != nil {
		return "", frame{}, err
	}
	counts, err := c.Fleet.Counts(ctx, filter.Filter{})
	if err != nil {
		return "", frame{}, err
	}
	archives, err := c.Archives.List(ctx, "", "")
	if err != nil {
		return "", frame{}, err
	}
	channels, err := c.Archives.Channels(ctx, "")
	if err != nil {
		return "", frame{}, err
	}
	v := releasesView{able: ableOf(ctx), said: s, Species: thing.AllSpecies(), Channels: channels, Names: artifact.Channels}
	running := map[string]chip{}
	for _, b := range counts.Version {
		if g, ok := narrowed(filter.Filter{}, filter.Version, b.Value); ok && b.Value != filter.None {
			running[b.Value] = chip{Label: b.Value, Count: b.Count, Address: fleetAddress(g.String(), "", "")}
		}
	}
	for _, r := range known {
		x := releaseView{Release: r, Running: running[string(r.Version)].Count, Address: running[string(r.Version)].Address}
		for _, a := range archives {
			if a.Version == r.Version && a.Species == r.Species {
				x.Archives = append(x.Archives, a)
			}
		}
		if slices.ContainsFunc(x.Archives, artifact.Artifact.Full) {
			v.Offers = append(v.Offers, chip{Label: string(r.Version) + " (" + r.Species.Name() + ")", Address: string(r.Species) + " " + string(r.Version)})
		}
		for _, w := range wishes {
			if w.Release == r.Version && (w.Scope == string(r.Species) || strings.HasPrefix(w.Scope, string(r.Species)+":")) {
				x.Wanted = append(x.Wanted, w.Scope)
			}
		}
		v.Rows = append(v.Rows, x)
	}
	for _, b := range counts.Version {
		if ch, ok := running[b.Value]; ok && !slices.ContainsFunc(known, func(r ota.Release) bool { return string(r.Version) == b.Value }) {
			v.Others = append(v.Others, ch)
		}
	}
	for _, w := range wishes {
		x := wishView{Wish: w, Place: "/things/" + w.Scope}
		if !strings.Contains(w.Scope, ":") {
			x.Kind, x.Place = thing.Species(w.Scope), fleetAddress("species:"+w.Scope, "", "")
		}
		v.Wishes = append(v.Wishes, x)
	}
	for _, ch := range channels {
		if none := (chip{Label: "nothing (" + ch.Species.Name() + ")", Address: string(ch.Species) + " "}); !slices.Contains(v.Offers, none) {
			v.Offers = append(v.Offers, none)
		}
	}
	return "releases", frame{Title: "Releases", Main: v}, nil
}

func (c *console) mountReleases(show func(pattern string, h view), act func(pattern string, a action)) {
	back := func(*http.Request) string { return "/releases" }
	show("GET /releases", c.releases)
	act("POST /releases", action{page.Called("release"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		r := ota.Release{Species: thing.Species(v.Get("species")), Version: ota.Version(strings.TrimSpace(v.Get("version"))), Notes: strings.TrimSpace(v.Get("notes")), Created: time.Now().UTC()}
		if _, err := ota.ParseVersion(string(r.Version)); err != nil {
			return outcome{}, err
		}
		if err := c.Audit(ctx, ota.AuditAdd, string(r.Species), string(r.Version)); err != nil {
			return outcome{}, err
		}
		return outcome{done: "release-added"}, c.Releases.AddRelease(ctx, r)
	}, c.releases, back})
	act("POST /releases/want", action{page.Called("want"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		version := ota.Version(strings.TrimSpace(v.Get("version")))
		if _, err := ota.ParseVersion(string(version)); err != nil {
			return outcome{}, err
		}
		return outcome{done: "release-wanted"}, c.want(ctx, strings.TrimSpace(v.Get("scope")), version)
	}, c.releases, back})
	act("POST /releases/unwant", action{page.Called("unwant"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		return outcome{done: "release-unwant"}, c.want(ctx, v.Get("scope"), "")
	}, c.releases, back})
	act("POST /releases/channel", action{page.Called("channel"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		species, version, _ := strings.Cut(v.Get("release"), " ")
		ch := artifact.Channel{Species: thing.Species(species), Channel: v.Get("channel"), Version: ota.Version(version), By: auth.CallerFrom(ctx).Subject()}
		if err := c.Audit(ctx, artifact.AuditChannel, species, ch.Channel+" "+version); err != nil {
			return outcome{}, err
		}
		_, err := c.Archives.SetChannel(ctx, ch)
		return outcome{done: "channel-set"}, err
	}, c.releases, back})
}

// want stores what a robot or a species should run; "" takes the wish back.
func (c *console) want(ctx context.Context, scope string, version ota.Version) error {
	id, err := thing.Parse(scope)
	species := thing.Species(scope).Check() == nil
	if err != nil && !species {
		return errs.New(errs.Invalid, "%.60q is neither a robot nor a species: want an id such as vic:00e20100, or %v", scope, thing.AllSpecies())
	}
	if err := c.Audit(ctx, ota.AuditWant, scope, string(version)); err != nil {
		return err
	}
	by := auth.CallerFrom(ctx).Subject()
	if species {
		_, err = c.Releases.SetSpeciesDesired(ctx, thing.Species(scope), version, by)
	} else {
		_, err = c.Releases.SetDesired(ctx, id, version, by)
	}
	return err
}
