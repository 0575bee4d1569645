// Package health says whether a process of the cloud can do its work, to load balancers, to operators, and as alerts; and it wires the fleet's health.
package health

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"kennel/cloud/app/identity"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertapi"
	"kennel/cloud/telemetry/alert/alertwire"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/health/healthapi"
	"kennel/cloud/telemetry/health/healthwire"
	"kennel/cloud/voice/answers/answersapi"
	"kennel/cloud/voice/voice/speechwire"
	"kennel/cloud/voice/voice/voiceapi"
	"kennel/cloud/voice/voice/voicewire"
	"kennel/cloud/wire"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/migrations"
	"kennel/infra/op"
	"kennel/infra/pg"
	"kennel/infra/telemetry"
	"kennel/jdocs"
)

// Checks are what a process cannot work without. servers is how many servers of the database the settings name; broker and uplink say which are used.
func Checks(b wire.Base, servers int, broker, uplink func(context.Context) (string, error), revocations, metadata func(context.Context) error, more ...telemetry.Check) []telemetry.Check {
	return append([]telemetry.Check{
		{Name: "postgres", Look: func(ctx context.Context) (string, error) {
			s, err := pg.Look(ctx, b.Pool)
			if err != nil {
				return "", telemetry.Advise(err, "Start Postgres, or correct postgres.dsn.")
			}
			return database(s, servers, farBehind)
		}},
		{Name: "broker", Look: broker},
		{Name: "uplink", Look: uplink},
		{Name: "disk", Ask: b.Volumes.Check},
		{Name: "revocations", Ask: revocations},
		{Name: "release_metadata", Ask: metadata},
		{Name: "migrations", Ask: func(ctx context.Context) error {
			n, err := pg.Pending(ctx, b.Pool, migrations.FS)
			if err == nil && n > 0 {
				err = fmt.Errorf("the database lacks %d migrations that this version needs: was an older backup restored? restart to apply them", n)
			}
			return err
		}},
	}, more...)
}

// Handler answers 200 while the process can do its work, else 503. Operators learn what is wrong; others only which part.
func Handler(ready *telemetry.Readiness) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rep := ready.Now(r.Context())
		out := map[string]any{}
		for _, p := range rep.Parts {
			out[p.Name] = p.OK
		}
		if auth.CallerFrom(r.Context()).Role.Staff() {
			out["parts"] = rep.Parts
		}
		code := http.StatusOK
		if !rep.Ready {
			code = http.StatusServiceUnavailable
		}
		kithttp.WriteJSON(w, code, out)
	}
}

// Troubles returns a function that tells which parts need attention. ready is asked when it is called.
func Troubles(ready func() *telemetry.Readiness) func(context.Context) []alert.Part {
	return func(ctx context.Context) (out []alert.Part) {
		for _, p := range ready().Now(ctx).Parts {
			if p.Reason != "" {
				reason := p.Reason
				if p.Do != "" {
					reason += ". " + p.Do
				}
				out = append(out, alert.Part{Name: p.Name, Failing: !p.OK, Reason: reason, Since: p.Since})
			}
		}
		return out
	}
}

// Wire wires the alerts about robots and about the parts of this process, and the fleet's health with the sums of events behind it. eventDays is how long events are kept.
func Wire(b wire.Base, events *das.Service, eventDays int, robots *registry.Service, cohorts *cohort.Service, parts func(context.Context) []alert.Part) (*alert.Service, wire.Slices, error) {
	alarms, alerts, err := alertwire.Wire(b, robots, parts)
	if err != nil {
		return nil, nil, err
	}
	fleet, err := healthwire.Wire(b, events, eventDays, robots, cohorts, alarms)
	return alarms, wire.Slices{alerts, fleet}, err
}

// SpeechConfig is the part speech of the settings.
type SpeechConfig = speechwire.Config

// Recognizers returns those that work on this machine without being configured.
func Recognizers() []string { return speechwire.Installed() }

// WireVoice wires what answers what people say to robots, and what became of it. The check says how the recognisers are.
func WireVoice(b wire.Base, cfg SpeechConfig, owners *owner.Service, docs jdocs.Service, id identity.Identity, robots *registry.Service) (*voicewire.Voice, telemetry.Check, wire.Slices, error) {
	voices, kept, err := voicewire.Wire(b, owners)
	if err != nil {
		return nil, telemetry.Check{}, nil, err
	}
	s, slice, err := speechwire.Wire(b, cfg, speechwire.Needs{Voice: voices, Docs: docs, Proves: id.Proves, Identify: id.Peers.Identify})
	robots.Hears(s.Trouble, s.Unheard)
	return voices, s.Check(), wire.Slices{kept, slice}, err
}

// Operations lists the operations of health, alerts and voice, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		healthapi.Operations(nil),
		alertapi.Operations(nil, nil),
		voiceapi.Operations(voiceapi.Config{}),
		answersapi.Operations(nil, nil),
	)
}
