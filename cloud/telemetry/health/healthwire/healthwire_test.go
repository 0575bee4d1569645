package healthwire

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"kennel/cloud/fleet/cohort"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// A cohort that cannot be asked does not keep the days of the others from expiring.
func TestMembersOf(t *testing.T) {
	fails := map[string]error{"gone": errs.New(errs.NotFound, "gone"), "costly": errs.New(errs.Invalid, "costly"), "slow": errs.New(errs.Exhausted, "slow")}
	member := func(_ context.Context, name string) ([]thing.ID, error) { return []thing.ID{"vic:1"}, fails[name] }
	list := []cohort.Cohort{{Name: "gone"}, {Name: "a"}, {Name: "costly"}, {Name: "slow"}, {Name: "z"}}
	got, err := membersOf(t.Context(), list, member, slog.New(slog.DiscardHandler))
	if err != nil || len(got) != 2 || len(got["a"]) != 1 || len(got["z"]) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	fails["a"] = errors.New("the database is away")
	if got, err := membersOf(t.Context(), list, member, slog.New(slog.DiscardHandler)); !errors.Is(err, fails["a"]) {
		t.Errorf("%v, %v: want to be tried again", got, err)
	}
}
