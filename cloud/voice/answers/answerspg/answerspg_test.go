package answerspg

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kennel/cloud/voice/answers"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

// house is a service with one robot, its owner and a clock.
type house struct {
	answers.Service
	store *Store
	owner string
	now   time.Time
}

func newHouse(t *testing.T) *house {
	h := &house{store: New(pgtest.New(t)), owner: "ann", now: time.Now().UTC().Truncate(time.Microsecond)}
	h.Service = answers.Service{Store: h.store, Now: func() time.Time { return h.now }, Owner: func(context.Context, thing.ID) (string, error) {
		if h.owner == "" {
			return "", errs.New(errs.NotFound, "no owner")
		}
		return h.owner, nil
	}}
	return h
}

// says has the robot answer a question.
func (h *house) says(t *testing.T, question string) {
	t.Helper()
	if err := h.Remember(t.Context(), rex, knowledge.Turn{At: h.now, Asked: question, Said: "because"}); err != nil {
		t.Fatal(err)
	}
}

func (h *house) choose(t *testing.T, account string, c answers.Choice) {
	t.Helper()
	if err := h.Choose(t.Context(), rex, account, c); err != nil {
		t.Fatal(err)
	}
}

// knows checks what a model is told: "no" if it is not asked, else the persona and the questions that the robot remembers.
func (h *house) knows(t *testing.T, when, want string) {
	t.Helper()
	talk, err := h.Recall(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	got := "no"
	if talk.Allowed {
		got = talk.Persona + ":"
		for _, turn := range talk.Turns {
			got += " " + turn.Asked
		}
	}
	if got != want {
		t.Errorf("%s: a model knows %q, want %q", when, got, want)
	}
}

// TestMemoryIsTheOwners (VEC-NLP-07): a model is asked, and words are kept beside a robot, only while its owner of then wants that; they end with the wish, and with the
// ownership, told in time or late; nothing is of another owner.
func TestMemoryIsTheOwners(t *testing.T) {
	h := newHouse(t)
	h.knows(t, "at first", "no")
	h.says(t, "q0")
	h.choose(t, "ann", answers.Choice{Asks: true, Persona: " pirate "})
	h.says(t, "q1")
	h.knows(t, "without a memory", "pirate:")
	h.choose(t, "ann", answers.Choice{Asks: true, Persona: "pirate", Remember: true})
	h.says(t, "q2")
	h.says(t, "q3")
	h.knows(t, "with a memory", "pirate: q2 q3")
	h.choose(t, "ann", answers.Choice{Asks: true, Persona: "parrot", Remember: true})
	h.knows(t, "with another persona", "parrot: q2 q3")
	if talk, err := h.Talk(t.Context(), rex, "ann"); err != nil || len(talk.Turns) != 2 || !talk.Turns[0].At.Equal(h.now) || talk.Persona != "parrot" {
		t.Errorf("ann reads %+v, %v", talk, err)
	}
	for _, other := range []string{"bob", ""} {
		h.owner = other
		h.says(t, "q4")
		if talk, err := h.Talk(t.Context(), rex, other); err != nil || talk.Persona != "" || len(talk.Turns) != 0 {
			t.Errorf("%q reads %+v, %v", other, talk, err)
		}
	}
	h.knows(t, "without an owner", ":")
	h.owner = "bob"
	h.knows(t, "of the next owner", "no")
	h.now = h.now.Add(time.Minute)
	ended := h.now
	h.now = h.now.Add(time.Minute)
	h.choose(t, "bob", answers.Choice{Asks: true, Persona: "cat", Remember: true})
	h.says(t, "q5")
	if err := h.store.End(t.Context(), rex, ended); err != nil { // of ann's ownership, told late
		t.Fatal(err)
	}
	h.knows(t, "after the next owner's choice", "cat: q5")
	if err := h.Forget(t.Context(), rex, "ann"); err != nil {
		t.Fatal(err)
	}
	h.knows(t, "after another forgot", "cat: q5")
	if err := h.Forget(t.Context(), rex, "bob"); err != nil {
		t.Fatal(err)
	}
	h.knows(t, "after the owner forgot", "cat:")
	h.says(t, "q6")
	h.choose(t, "bob", answers.Choice{Asks: false, Remember: false})
	h.choose(t, "bob", answers.Choice{Asks: true, Persona: strings.Repeat("ü", answers.MaxPersona)})
	h.choose(t, "bob", answers.Choice{Asks: true, Remember: true})
	h.knows(t, "after the owner wanted no memory", ":")
	h.says(t, "q7")
	if err := h.store.End(t.Context(), rex, h.now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	h.knows(t, "after the end", "no")
	if err := h.Choose(t.Context(), rex, "bob", answers.Choice{Persona: strings.Repeat("x", answers.MaxPersona+1)}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a long persona: %v", err)
	}
	var left int
	if err := h.store.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM answers_talk) + (SELECT count(*) FROM answers_turn)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// TestMemoryWaits: a turn that is being kept while its owner turns the memory off is kept before, and deleted, or not at all.
func TestMemoryWaits(t *testing.T) {
	h := newHouse(t)
	h.choose(t, "ann", answers.Choice{Asks: true, Remember: true})
	tx, err := h.store.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // it was committed
	if _, err := tx.Exec(t.Context(), `UPDATE answers_talk SET remember = false`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Remember(t.Context(), rex, knowledge.Turn{At: h.now, Asked: "q", Said: "a"}) }()
	testwait.Until(t, testwait.Long, "the turn waits for the choice", testwait.Holds(func() (waits bool) {
		return h.store.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%answers_turn%' AND datname = current_database())`).Scan(&waits) == nil && waits
	}))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := testwait.For(t, done, "the turn"); err != nil {
		t.Fatal(err)
	}
	if turns, err := h.store.Turns(t.Context(), rex, "ann", 10); err != nil || len(turns) != 0 {
		t.Errorf("kept %+v, %v", turns, err)
	}
}

// TestMemoryIsBounded: a robot remembers the newest turns, and none that is too old.
func TestMemoryIsBounded(t *testing.T) {
	h := newHouse(t)
	h.choose(t, "ann", answers.Choice{Asks: true, Remember: true})
	for n := range answers.KeptTurns + 5 {
		h.now = h.now.Add(time.Second)
		h.says(t, fmt.Sprint("q", n))
	}
	h.knows(t, "with a long memory", ": q39 q40 q41 q42 q43 q44")
	turns, err := h.store.Turns(t.Context(), rex, "ann", 100)
	if err != nil || len(turns) != answers.KeptTurns || turns[0].Asked != "q5" {
		t.Errorf("%d turns, %v", len(turns), err)
	}
	if err := h.store.Expire(t.Context(), h.now); err != nil {
		t.Fatal(err)
	}
	h.knows(t, "a month later", ": q44")
}
