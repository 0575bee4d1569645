package owner_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"kennel/cloud/identity/owner"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	checks := "40" // make soak asks for more
	if os.Getenv("KENNEL_SOAK") != "" {
		checks = "2000"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": "4", "rapid.nofailfile": "true", "rapid.shrinktime": "1s"} {
		if !set[name] {
			_ = flag.Set(name, value) // the flag exists
		}
	}
	pgtest.Main(m)
}

// act is a person's action on a robot, with its result.
type act struct {
	Process       int
	What, Account string
	t             owner.Tenure
	err           error
}

// TestOneOwner: claims, associations, transfers, releases and wipes of one robot at once in two processes. At every time it has one owner at
// most, every success is in the history as it was answered, and the history holds nothing else.
func TestOneOwner(t *testing.T) {
	h := newHouse(t)
	procs := []process{h.process(), h.process()}
	n := 0
	people := []string{"ann", "bob", "eve"}
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := thing.ID(fmt.Sprint("vic:r", n))
		lanes := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) *act {
			return &act{Process: rapid.IntRange(0, 1).Draw(rt, "process"), Account: rapid.SampledFrom(people).Draw(rt, "account"),
				What: rapid.SampledFrom([]string{"claim", "claim", "associate", "associate wiped", "release", "transfer", "wipe", "disassociate"}).Draw(rt, "what")}
		}), 1, 6), 2, 5).Draw(rt, "lanes")

		h.mu.Lock()
		h.told = nil
		h.mu.Unlock()
		ctx := context.WithoutCancel(t.Context())
		if err := procs[0].store.Prune(ctx, 0); err != nil { // there were not too many tries yet
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stop, watched := make(chan struct{}), make(chan struct{})
		go func() { // sees the robot all the time
			defer close(watched)
			for {
				select {
				case <-stop:
					return
				default:
				}
				var lasting int
				if err := procs[0].pool.QueryRow(ctx, `SELECT count(*) FROM owner_tenure WHERE thing = $1 AND until IS NULL`, id).Scan(&lasting); err != nil || lasting > 1 {
					t.Errorf("%d owners, %v", lasting, err)
					return
				}
			}
		}()
		for l, lane := range lanes {
			wg.Go(func() {
				for i, a := range lane {
					a.do(ctx, procs, id, fmt.Sprint("k-", l, "-", i), people)
				}
			})
		}
		wg.Wait()
		close(stop)
		<-watched
		check(t, h, procs[0], id, slices.Concat(lanes...))
	})
}

// do does it. Refusals that others caused are as good as successes; anything else is not.
func (a *act) do(ctx context.Context, procs []process, id thing.ID, key string, people []string) {
	p, q := procs[a.Process], procs[1-a.Process]
	switch a.What {
	case "claim":
		var code string
		if code, _, a.err = p.OfferCode(ctx, id, key); a.err == nil {
			a.t, a.err = q.Claim(ctx, a.Account, "192.0.2.1", "", code)
		}
	case "associate", "associate wiped":
		how := owner.HowAssociate
		if a.What != "associate" {
			how = owner.HowWiped
		}
		a.err = p.Associate(ctx, id, a.Account, how)
	case "release":
		a.err = p.Release(ctx, a.Account, id)
	case "transfer":
		to := people[(slices.Index(people, a.Account)+1)%len(people)]
		var o owner.Offer
		if o, a.err = p.Offer(ctx, a.Account, "", id, to, owner.Proof{Password: "right"}); a.err == nil {
			a.t, a.err = q.Accept(ctx, to, "", o.ID)
		}
	case "wipe":
		a.err = p.Wiped(ctx, id, key)
	case "disassociate":
		a.err = p.Disassociate(ctx, id)
	}
}

func check(t *testing.T, h *house, p process, id thing.ID, acts []*act) {
	t.Helper()
	history, err := p.History(t.Context(), id, owner.MaxHistory)
	must(t, err)
	slices.Reverse(history)
	byID := map[int64]owner.Tenure{}
	began, ended := map[string]int{}, map[string]int{}
	for i, x := range history {
		byID[x.ID] = x
		began[x.How]++
		ended[x.Ended]++
		if x.Until == nil && i != len(history)-1 {
			t.Errorf("%s: %+v lasts, and another follows", id, x)
		}
		if i > 0 && (history[i-1].Until == nil || x.Since.Before(*history[i-1].Until)) {
			t.Errorf("%s: two owners at once: %+v, %+v", id, history[i-1], x)
		}
		if x.Until != nil && x.Until.Before(x.Since) {
			t.Errorf("%s: %+v ends before it begins", id, x)
		}
	}
	done := map[string]int{}
	allowed := []string{"owned", "code_over", "code_refused", "wrong_account", "not_yours", "no_transfer", "too_many_attempts"}
	for _, a := range acts {
		if a.err != nil {
			if !slices.Contains(allowed, errs.CodeOf(a.err)) {
				t.Errorf("%s: %s by %s: %v", id, a.What, a.Account, a.err)
			}
			continue
		}
		done[a.What]++
		if a.What == "claim" || a.What == "transfer" {
			if x, ok := byID[a.t.ID]; !ok || x.Account != a.t.Account || x.How != a.t.How || !x.Since.Equal(a.t.Since) {
				t.Errorf("%s: %s was answered %+v, the history says %+v", id, a.What, a.t, x)
			}
		}
	}
	if done["claim"] != began[owner.HowCode] || done["transfer"] != began[owner.HowTransfer] || done["transfer"] != ended[owner.EndTransferred] ||
		done["release"] != ended[owner.EndReleased] || ended[owner.EndDisassociated] > done["disassociate"] ||
		began[owner.HowAssociate] > done["associate"] || began[owner.HowWiped] > done["associate wiped"] {
		t.Errorf("%s: done %v, began %v, ended %v", id, done, began, ended)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(ended, "") // it lasts
	want := 0
	for _, n := range ended {
		want += n
	}
	if len(h.told) != want {
		t.Errorf("%s: %d ends told, want %d: %v", id, len(h.told), want, ended)
	}
}
