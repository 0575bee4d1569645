// Package orders wires what robots are told to do: commands to one, bulk jobs for many, and releases.
package orders

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"kennel/cloud/app/link"
	"kennel/cloud/app/records"
	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/bulk/bulkapi"
	"kennel/cloud/fleet/bulk/bulkpg"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandapi"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/motion"
	"kennel/cloud/fleet/motion/motionapi"
	"kennel/cloud/fleet/motion/motionpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/page"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/hawkbit/hawkbitapi"
	"kennel/cloud/updates/rollout/rolloutapi"
	"kennel/cloud/updates/tufrepo/tufrepoapi"
	"kennel/cloud/voice/intents/intentsapi"
	"kennel/cloud/voice/intents/intentswire"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
	"kennel/speech"
)

// Orders are both.
type Orders struct {
	Commands *command.Service
	Bulk     *bulk.Service
	Says     *intentswire.Service
	Sender   *command.Sender // nil without the bridge's role
	Slices   wire.Slices     // commands first
}

// Wire wires both, and devices that update themselves with SWUpdate.
func Wire(b wire.Base, l *link.Link, robots *registry.Service, cohorts *cohort.Service, docs records.Documents, devices Devices, spoken *speech.Config) (o Orders, err error) {
	var commands wire.Slice
	if o.Commands, o.Sender, commands, err = wireCommands(b, l, robots); err != nil {
		return o, err
	}
	var jobs wire.Slice
	o.Bulk, jobs = wireBulk(b, robots, cohorts, o.Commands, docs)
	device, err := devices.wire(b, robots)
	var says wire.Slice
	o.Says, says = intentswire.Wire(b, o.Commands, speech.New(*spoken).Text)
	o.Slices = wire.Slices{commands, jobs, device, says}
	return o, err
}

// Choices wires when owners want their robots' updates. The slice comes after the documents: its erasure ends the ownership.
func Choices(b wire.Base, owners *owner.Service) wire.Slice {
	store := otapg.New(b.Pool)
	return wire.Slice{Personal: []wire.Holding{{Name: "update_choices", Keeps: []string{"ota_choice"}, Data: owner.Held{Kind: "update choices", Owners: owners, List: store.ChoicesOf, Drop: store.DropChoices},
		Ended: func(ctx context.Context, t owner.Tenure) error {
			_, err := store.DropChoices(ctx, t.Stretch(time.Now()))
			return err
		}}}}
}

func wireCommands(b wire.Base, l *link.Link, robots *registry.Service) (*command.Service, *command.Sender, wire.Slice, error) {
	store := commandpg.New(b.Pool)
	svc := command.New(store, command.Online(robots.Online))
	s := wire.Slice{
		Requests: commandapi.Handlers(svc),
		Operations: func(d wire.Doors) wire.Operations {
			return commandapi.Operations(svc, commandapi.Config{Known: d.Known, Audit: d.Audit})
		},
		Jobs: []jobs.Job{
			{Name: "command.expire", Every: 10 * time.Second, Run: svc.Expire},
			{Name: "command.forget", Every: time.Hour, Run: svc.Forget},
		},
		Personal: []wire.Holding{{Name: "commands", Keeps: []string{"command_outbox"}, Data: store,
			Ended: func(ctx context.Context, t owner.Tenure) error {
				return svc.TenureEnded(ctx, t.Thing, t.Account, *t.Until)
			}}},
	}
	var sender *command.Sender
	if b.Has(wire.Bridge) {
		sender = command.NewSender(store, l.Send, l.Connected, b.Log)
		s.Runs = []wire.Run{{Name: "commands", Run: sender.Run}}
		if err := b.Meters.Commands(sender); err != nil {
			return nil, nil, s, err
		}
	}
	if !b.Has(wire.Jobs) {
		return svc, sender, s, nil
	}
	return svc, sender, s, b.Meters.Backlog(store)
}

func wireBulk(b wire.Base, robots *registry.Service, cohorts *cohort.Service, commands *command.Service, docs records.Documents) (*bulk.Service, wire.Slice) {
	svc := bulk.New(bulkpg.New(b.Pool, b.Orders), bulk.Robots{
		Select: robots.Select, Known: robots.Known, Tag: robots.Tag, Cohort: cohorts.Get, Send: commands.Send, Owned: ownerpg.New(b.Pool).Owned,
		Set: func(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (uint64, error) {
			rev, err := docs.Set(ctx, key, fields, by)
			return rev.Version, err
		},
	})
	return svc, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return bulkapi.Operations(svc, d.Audit) },
		Jobs: []jobs.Job{
			{Name: "bulk.resume", Every: time.Minute, Run: svc.Resume},
			{Name: "bulk.forget", Every: time.Hour, Run: svc.Forget},
		},
		Tasks: []jobs.Task{{Name: bulk.TaskRun, Run: svc.Run}},
	}
}

// Motions wires the motions that people upload for robots. The slice comes after the documents, as Choices does.
func Motions(b wire.Base, l *link.Link, owners *owner.Service, commands *command.Service) (*motion.Service, wire.Slice) {
	store, whose := motionpg.New(b.Pool), owner.NewWhose(ownerpg.New(b.Pool))
	svc := motion.New(motion.Config{Store: store, Commands: commands, Send: l.Send, Log: b.Log, Since: func(ctx context.Context, id thing.ID) (time.Time, error) {
		t, err := whose.Tenure(ctx, id)
		if errs.KindOf(err) == errs.NotFound {
			return time.Time{}, nil
		}
		return t.Since, err
	}})
	return svc, wire.Slice{
		Requests: motionapi.Handlers(svc),
		Operations: func(d wire.Doors) wire.Operations {
			return motionapi.Operations(svc, motionapi.Config{Known: d.Known, Audit: d.Audit})
		},
		Pages: []page.Extra{motionapi.Page(svc)},
		Personal: []wire.Holding{{Name: "motions", Keeps: []string{"motion_file"}, Data: owner.Filed{Held: owner.Held{Kind: "motions", Owners: owners, List: store.Of, Drop: store.Drop}, Each: store.Files},
			Ended: func(ctx context.Context, t owner.Tenure) error {
				_, err := store.Drop(ctx, t.Stretch(time.Now()))
				return err
			}}},
	}
}

// Operations lists the operations of commands, releases and rollouts, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		commandapi.Operations(nil, commandapi.Config{}),
		bulkapi.Operations(nil, nil),
		intentsapi.Operations(nil, intentsapi.Config{}),
		motionapi.Operations(nil, motionapi.Config{}),
		otaapi.Operations(nil, nil),
		artifactapi.Operations(nil, nil),
		tufrepoapi.Operations(nil, nil),
		rolloutapi.Operations(nil, nil),
		hawkbitapi.Operations(nil, nil, nil),
	)
}
