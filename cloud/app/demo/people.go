package demo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/bulk/bulkpg"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/cohort/cohortpg"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registrycerts"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// since is how long the robots and their owners are known.
const since = 30 * day

// PrivateOwner is the e-mail of an owner who shares no data. The password of the account is thrown away.
const PrivateOwner = "private@kennel.local"

// audit writes what operators did before the demo was made: the log is a chain, so that its lines are written in their order.
func (s *seeding) audit(ctx context.Context) error {
	log := audit.New(accountpg.New(s.clock.pool), s.clock.now)
	for _, l := range []struct {
		ago                    time.Duration
		by                     string
		role                   auth.Role
		action, object, detail string
	}{
		{since, s.Operator, auth.Admin, "thing.register", "140 robots", "by a list"},
		{20 * day, releaseManager, auth.ReleaseManager, "release.upload", "vic", older},
		{14 * day, releaseManager, auth.ReleaseManager, "release.upload", "vic", steady},
		{8 * day, releaseManager, auth.ReleaseManager, "release.upload", "vic", newest},
		{overBegan, releaseManager, auth.ReleaseManager, "rollout.create", OverRollout, "vic " + steady + " to prod"},
		{overBegan - approvedAfter, s.Operator, auth.Admin, "rollout.approve", OverRollout, ""},
		{began, releaseManager, auth.ReleaseManager, "rollout.create", Rollout, "vic " + newest + " to prod"},
		{began - approvedAfter, s.Operator, auth.Admin, "rollout.approve", Rollout, ""},
		{faultSince - 40*time.Minute, s.Operator, auth.Admin, "alert.ack", "1", "a mended release is on its way"},
		{2 * time.Hour, s.Operator, auth.Admin, "bulk.start", "", "add tag night"},
		{lastPhase, s.Operator, auth.Admin, "rollout.release", Rollout, ""},
	} {
		s.clock.set(s.Now.Add(-l.ago))
		if err := log.Append(ctx, audit.Entry{Actor: l.by, Role: l.role, Action: l.action, Object: l.object, Detail: l.detail}); err != nil {
			return err
		}
	}
	return nil
}

// identities registers and enrols the robots. Their keys and secrets are in no file.
func (s *seeding) identities(ctx context.Context) error {
	s.clock.set(s.Now.Add(-since))
	store, robots := certspg.New(s.clock.pool), registrypg.New(s.clock.pool, s.Log)
	table := registrycerts.Fleet{Registry: registry.New(robots, robots, registry.Sources{}, s.Log), Store: store, Log: s.Log}
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: s.Authority, Recorder: table.Table(table.Steps()), Now: s.clock.now,
		ByAddr: ratelimit.NewByAddr(time.Nanosecond, len(s.robots)), ByThing: ratelimit.New(time.Nanosecond, 1)})
	if err != nil {
		return err
	}
	for i, r := range s.robots {
		secret, err := svc.Register(ctx, r.id)
		if err != nil {
			return err
		}
		if _, err := robots.Tag(ctx, r.id, r.tags, nil); err != nil {
			return err
		}
		if len(r.online) == 0 { // it never came
			continue
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(r.id)}}, key)
		if err != nil {
			return err
		}
		if _, err := svc.Enroll(ctx, certs.EnrollRequest{Thing: string(r.id), CSR: csr, Secret: secret, Addr: fmt.Sprintf("192.0.2.%d", i+1)}); err != nil { // RFC 5737
			return err
		}
	}
	cohorts := cohort.New(cohortpg.New(s.clock.pool))
	for _, tag := range []string{home, beta, lab} {
		if _, err := cohorts.Put(ctx, cohort.Cohort{Name: tag, Filter: filter.MustParse("tag:" + tag)}, s.Operator, cohort.Fresh); err != nil {
			return err
		}
	}
	return nil
}

// Owned are the robots of Config.Owner, with their names, and Private those of PrivateOwner.
var (
	Owned   = map[thing.ID]string{"vic:00e2d001": "Rex", "amigo:00e2d000": "Pixel"}
	Private = map[thing.ID]string{"vic:00e2d002": "Mops", "vic:00e2d004": "Hugo"}
)

// owners gives robots to people and sets their settings.
func (s *seeding) owners(ctx context.Context) error {
	s.clock.set(s.Now.Add(-since + time.Hour))
	docs := jdocs.New(jdocspg.New(s.clock.pool))
	mine, err := s.People.Find(ctx, s.Owner)
	if err != nil {
		return fmt.Errorf("account %s: %w", s.Owner, err)
	}
	private, _, err := s.People.CreateAccount(ctx, PrivateOwner, auth.Owner, "")
	if err != nil {
		return err
	}
	store := ownerpg.New(s.clock.pool)
	for account, robots := range map[string]map[thing.ID]string{string(mine.ID): Owned, string(private.ID): Private} {
		shares := json.RawMessage("false")
		if account == string(mine.ID) {
			shares = json.RawMessage("true")
		}
		if _, err := docs.Set(ctx, jdocs.Key{Account: account, Name: jdocs.AccountSettings}, map[string]json.RawMessage{"data_collection": shares}, account); err != nil {
			return err
		}
		for id, name := range robots {
			if _, _, err := store.Begin(ctx, id, account, owner.HowCode, false); err != nil {
				return err
			}
			if _, err := store.Rename(ctx, id, account, name); err != nil {
				return err
			}
		}
	}
	if err := store.TellNews(ctx, len(Owned)+len(Private), func(context.Context, owner.News) error { return nil }); err != nil { // the letters of that day were read long ago
		return err
	}
	for i, r := range s.robots {
		set := func(ago time.Duration, field, value string) error {
			s.clock.set(s.Now.Add(-ago))
			_, err := docs.Set(ctx, jdocs.Key{Thing: r.id, Name: jdocs.RobotSettings.Of(r.id)}, map[string]json.RawMessage{field: json.RawMessage(value)}, string(r.id))
			return err
		}
		err := set(since-2*time.Hour, "time_zone", fmt.Sprintf("%q", r.zone))
		if err == nil && i%9 == hero {
			err = set(26*time.Hour+time.Duration(len(r.online))*7*time.Minute, "master_volume", "3")
		}
		if err != nil {
			return err
		}
	}
	s.clock.set(s.Now.Add(-2 * time.Hour))
	stats := `{"Alive.seconds":1900800,"Odom.Body":1834000,"Pet.ms":2820000,"BStat.AttemptedFistBump":19,"BStat.FistBumpSuccess":14,"BStat.ReactedToTriggerWord":322,"BStat.ReactedToCliff":41}`
	for id := range Owned {
		if id.Species() == thing.Vector {
			if _, err := docs.Write(ctx, jdocs.Key{Thing: id, Name: jdocs.RobotLifetimeStats}, jdocs.Doc{FmtVersion: 1, JSON: stats}, string(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// presence writes when the robots came and went, and what they said last.
func (s *seeding) presence(ctx context.Context) error {
	store, docs := registrypg.New(s.clock.pool, s.Log), jdocs.New(jdocspg.New(s.clock.pool))
	faulty := 0
	for _, r := range s.robots {
		if len(r.online) == 0 {
			continue
		}
		present, since := r.at(s.Now)
		if present && r.os(s.Now) == steady && Owned[r.id] == "" && Private[r.id] == "" && faulty < 9 {
			r.fault = true
			faulty++
		}
		seen := s.Now
		if !present {
			seen = since
		}
		s.clock.set(seen)
		_, rev, _, err := store.Lease(ctx, r.id)
		if err != nil {
			return err
		}
		var changes []registry.Change
		for _, x := range r.online {
			changes = append(changes, registry.Change{At: x.from, Present: true})
			if !x.to.IsZero() {
				changes = append(changes, registry.Change{At: x.to})
			}
		}
		m := r.status(seen)
		if m.Docs, err = jdocs.Versions(ctx, docs, r.id); err != nil {
			return err
		}
		l := registry.Lease{BootID: m.BootID, ConnectSeq: m.ConnectSeq, Seq: m.Seq, Present: present, Since: since, LastSeen: seen, Until: seen}
		if present {
			l.Until = s.Now.Add(registry.MaxLease)
		}
		if saved, err := store.SaveLease(ctx, r.id, rev, l, changes, &registry.StatusAt{Message: m}); err != nil || !saved {
			return fmt.Errorf("lease of %s: saved %v: %w", r.id, saved, err)
		}
		if err := store.AddSteps(ctx, []registry.Step{{Thing: r.id, At: since, Name: registry.StepBroker, OK: true}}, false); err != nil {
			return err
		}
	}
	return nil
}

// commands has operators give commands, and robots carry them out.
func (s *seeding) commands(ctx context.Context) error {
	svc := command.New(commandpg.New(s.clock.pool))
	give := func(ago time.Duration, id thing.ID, kind, args string, status commandwire.Status, detail string) error {
		s.clock.set(s.Now.Add(-ago))
		c, err := svc.Send(ctx, command.Draft{Thing: id, Kind: kind, Args: json.RawMessage(args), By: s.Operator})
		if err != nil || status == "" {
			return err
		}
		s.clock.set(s.Now.Add(-ago + 2*time.Second))
		if _, err := svc.Pull(ctx, id); err != nil {
			return err
		}
		_, err = svc.Finish(ctx, id, commandwire.Result{ID: c.ID, Status: status, Detail: detail, Finished: s.clock.now().UnixMilli()})
		return err
	}
	for i, r := range s.robots {
		if present, _ := r.at(s.Now); !present || i%6 != 1 {
			continue
		}
		if err := give(5*time.Hour+time.Duration(i)*3*time.Minute, r.id, commandwire.Ping, "{}", commandwire.Done, "agentd demo, up for 30h"); err != nil {
			return err
		}
		if r.fault {
			if err := give(3*time.Hour, r.id, commandwire.RestartAgent, "{}", commandwire.Done, ""); err != nil {
				return err
			}
		}
		if err := give(100*time.Minute, r.id, commandwire.FlushEvents, "{}", commandwire.Done, "nothing waits"); err != nil {
			return err
		}
	}
	for i, x := range []struct {
		status commandwire.Status
		detail string
	}{{commandwire.Failed, "the document is being changed"}, {commandwire.Expired, "it came too late"}, {"", ""}} {
		if err := give(time.Duration(3-i)*15*time.Minute, s.robots[hero].id, commandwire.Sync, "{}", x.status, x.detail); err != nil {
			return err
		}
	}
	s.clock.set(s.Now.Add(-2 * time.Hour))
	robots := registrypg.New(s.clock.pool, s.Log)
	jobs := bulk.New(bulkpg.New(s.clock.pool, s.Orders), bulk.Robots{Tag: robots.Tag, Known: func(context.Context, thing.ID) error { return nil }})
	var things []thing.ID
	for _, r := range s.robots {
		if r.id.Species() == thing.AmigoBot {
			things = append(things, r.id)
		}
	}
	job, err := jobs.Start(ctx, bulk.Draft{Things: things, Action: bulk.Action{Kind: bulk.Tag, Add: []string{"night"}}, By: s.Operator})
	if err != nil {
		return err
	}
	return jobs.Run(ctx, bulk.PartID(job.ID, 0))
}
