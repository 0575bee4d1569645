package people_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
	"kennel/jdocs/people"
)

var (
	robot    = thing.MustParse("vic:00e20100")
	settings = jdocs.Key{Thing: robot, Name: jdocs.RobotSettings}
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestPeople: people reach what the API lets their caller reach, and learn what a robot still lacks without learning what was.
func TestPeople(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	write := func(version uint64, text string) {
		t.Helper()
		if r, err := svc.Write(t.Context(), settings, jdocs.Doc{Version: version, FmtVersion: 2, JSON: text}, string(robot)); err != nil ||
			r.Status != jdocs.Accepted {
			t.Fatal(r, err)
		}
	}
	write(0, `{"default_location":"the home of before","master_volume":1,"gone":1}`)
	since := time.Now()
	write(1, `{"default_location":"here","master_volume":1}`)
	p := &people.Documents{Docs: svc, Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return since, account == "ann" && id == robot, nil
	}}
	ann := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: "ann"})
	bob := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: "bob"})

	rev, err := p.Set(ann, robot, jdocs.RobotSettings, map[string]json.RawMessage{"master_volume": json.RawMessage("3")})
	if err != nil || rev.Version != 3 || rev.By != "owner" {
		t.Errorf("set: %+v, %v", rev, err)
	}
	if got, err := p.Get(ann, robot, jdocs.RobotSettings); err != nil || got != rev {
		t.Errorf("get: %+v, %v; want %+v", got, err, rev)
	}
	for version, want := range map[uint64][]string{
		3: nil, 2: {"master_volume"}, 1: {"default_location", "gone", "master_volume"}, 9: {"default_location", "master_volume"},
	} {
		if got, err := p.Differing(ann, robot, jdocs.RobotSettings, version); err != nil || !slices.Equal(got, want) {
			t.Errorf("what version %d lacks: %v, %v; want %v", version, got, err, want)
		}
	}
	_, gerr := p.Get(bob, robot, jdocs.RobotSettings)
	_, serr := p.Set(bob, robot, jdocs.RobotSettings, map[string]json.RawMessage{"master_volume": json.RawMessage("0")})
	_, derr := p.Differing(bob, robot, jdocs.RobotSettings, 1)
	_, terr := p.Get(ann, robot, jdocs.AppTokens)
	for what, err := range map[string]error{"get": gerr, "set": serr, "differing": derr, "tokens": terr} {
		if errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s of what is another's: %v", what, err)
		}
	}
}
