package docs

import (
	"context"
	"errors"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// owned is the cloud for a robot whose owner is ann; "": it has none.
type owned struct {
	remote
	owner string
}

func (o *owned) robots() jdocs.Robots {
	return jdocs.Robots{Docs: o.Rules, OwnerOf: func(context.Context, thing.ID) (string, error) {
		if o.owner == "" {
			return "", errs.New(errs.NotFound, "no owner")
		}
		return o.owner, nil
	}}
}

func (o *owned) Read(ctx context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error) {
	if err := o.pass("read"); err != nil {
		return nil, err
	}
	return o.robots().Read(ctx, jdocs.Asker{Thing: rex}, items)
}

func (o *owned) Write(ctx context.Context, name jdocs.Name, d jdocs.Doc) (jdocs.WriteResult, error) {
	if err := o.pass("write"); err != nil {
		return jdocs.WriteResult{}, err
	}
	return o.robots().Write(ctx, jdocs.Asker{Thing: rex}, name, d)
}

func reaching(t *testing.T) (*Reach, *robot, *owned) {
	t.Helper()
	c := newCloud(t)
	r := newRobot(t, c)
	o := &owned{remote{c}, "ann"}
	r.cfg.Remote = o
	r.boot()
	return r.Agent.Reach(), r, o
}

// TestReachOwner: a program reads and changes the documents of the robot's owner in the cloud, where another's change in between is kept; without an owner or
// a cloud it is told so (VEC-DOC-05, VEC-DOC-06).
func TestReachOwner(t *testing.T) {
	r, robot, o := reaching(t)
	ctx := t.Context()
	if _, err := r.Get(ctx, jdocs.AccountSettings); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without a cloud: %v", err)
	}
	robot.Connected()
	d, err := r.Get(ctx, jdocs.AccountSettings)
	if err != nil || d.Version != 0 || d.FmtVersion != 1 {
		t.Errorf("nothing is set: %+v, %v", d, err)
	}
	key := jdocs.Key{Account: "ann", Name: jdocs.AccountSettings}
	if _, err := o.Set(ctx, key, parse(t, `{"DATA_COLLECTION":true,"later":1}`), "ann"); err != nil {
		t.Fatal(err)
	}
	if d, err = r.Set(ctx, jdocs.AccountSettings, parse(t, `{"data_collection":false}`)); err != nil || d.Version != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	raced := false
	o.fault = func(call string) error {
		if call == "write" && !raced {
			raced = true
			_, err := o.Set(ctx, key, parse(t, `{"app_locale":"de-DE"}`), "ann")
			return err
		}
		return nil
	}
	if d, err = r.Set(ctx, jdocs.AccountSettings, parse(t, `{"data_collection":true}`)); err != nil || d.Version != 4 {
		t.Errorf("beside another writer: %+v, %v", d, err)
	}
	o.fault = nil
	rev, err := o.Get(ctx, jdocs.Key{Account: "ann", Name: jdocs.AccountSettings})
	if err != nil || !jdocs.Equal([]byte(rev.JSON), []byte(`{"data_collection":true,"app_locale":"de-DE","later":1}`)) {
		t.Errorf("in the cloud: %+v, %v", rev, err)
	}
	if _, err := r.Set(ctx, jdocs.AccountSettings, parse(t, `{"data_collection":7}`)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a wrong value: %v", err)
	}
	if d, err := r.Set(ctx, jdocs.UserEntitlements, parse(t, `{"kickstarter_eyes":true}`)); err != nil || d.Version != 1 || d.JSON != `{"kickstarter_eyes":true}` {
		t.Errorf("%+v, %v", d, err)
	}
	o.owner = ""
	if d, err := r.Get(ctx, jdocs.UserEntitlements); err != nil || d.Version != 0 {
		t.Errorf("without an owner: %+v, %v", d, err)
	}
	if _, err := r.Set(ctx, jdocs.UserEntitlements, parse(t, `{"kickstarter_eyes":true}`)); errs.KindOf(err) != errs.Denied {
		t.Errorf("without an owner: %v", err)
	}
}

// TestReachSettings: a change of the robot's settings is in the cloud when Set returns, with the next version; without the cloud it is on disk, survives a kill,
// and is pushed later.
func TestReachSettings(t *testing.T) {
	r, robot, o := reaching(t)
	ctx := t.Context()
	robot.Connected()
	d, err := r.Set(ctx, jdocs.RobotSettings, parse(t, `{"eye_color":3}`))
	if err != nil || d.Version == 0 || d.Version != o.doc(jdocs.RobotSettings).Version {
		t.Fatalf("%+v, %v", d, err)
	}
	next, err := r.Set(ctx, jdocs.RobotSettings, parse(t, `{"eye_color":4}`))
	if err != nil || next.Version != d.Version+1 || field(o.doc(jdocs.RobotSettings).JSON, "eye_color") != "4" {
		t.Errorf("%+v after version %d, %v", next, d.Version, err)
	}
	o.fault = func(string) error { return errors.New("lost") }
	if same, err := r.Set(ctx, jdocs.RobotSettings, parse(t, `{"eye_color":5}`)); err != nil || same.Version != next.Version || field(same.JSON, "eye_color") != "5" {
		t.Errorf("%+v, %v", same, err)
	}
	o.fault = nil
	robot.boot() // killed
	robot.Connected()
	if err := robot.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if rev := o.doc(jdocs.RobotSettings); field(rev.JSON, "eye_color") != "5" || rev.Version != next.Version+1 {
		t.Errorf("%+v", rev)
	}
	if _, err := r.Set(ctx, jdocs.RobotSettings, parse(t, `{"eye_color":9}`)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a color that there is not: %v", err)
	}
}

func field(text, name string) string { return string(fields(text)[name]) }
