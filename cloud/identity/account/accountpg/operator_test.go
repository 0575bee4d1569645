package accountpg_test

import (
	"maps"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

func (w world) admin(t *testing.T, email string) account.By {
	t.Helper()
	return account.By{ID: w.create(t, email, auth.Admin).ID, Addr: here}
}

// Every change of an operator by every role, with its result. Each case begins with two administrators, a viewer and an owner.
func TestWhoChangesOperators(t *testing.T) {
	type people struct{ eve, dan, vic, own account.ID }
	role := func(by, id func(people) account.ID, r auth.Role) func(world, *testing.T, people) error {
		return func(w world, t *testing.T, p people) error {
			return w.Operators.SetRole(t.Context(), account.By{ID: by(p), Addr: here}, id(p), r)
		}
	}
	eve, dan := func(p people) account.ID { return p.eve }, func(p people) account.ID { return p.dan }
	vic, own := func(p people) account.ID { return p.vic }, func(p people) account.ID { return p.own }
	nobody := func(people) account.ID { return "" }
	for _, c := range []struct {
		name string
		do   func(world, *testing.T, people) error
		kind errs.Kind
		code string
	}{
		{"an administrator raises a viewer", role(eve, vic, auth.Admin), 0, ""},
		{"an administrator demotes another", role(eve, dan, auth.Viewer), 0, ""},
		{"an administrator steps down", role(eve, eve, auth.Viewer), 0, ""},
		{"a viewer raises himself", role(vic, vic, auth.Admin), errs.Denied, "not_admin"},
		{"an owner raises himself", role(own, own, auth.Admin), errs.Denied, "not_admin"},
		{"nobody raises a viewer", role(nobody, vic, auth.Admin), errs.Denied, "not_admin"},
		{"an owner is no operator", role(eve, own, auth.Viewer), errs.NotFound, ""},
		{"an operator becomes no owner", role(eve, vic, auth.Owner), errs.Invalid, ""},
		{"no such role", role(eve, vic, "king"), errs.Invalid, ""},
		{"an unknown account", role(eve, func(people) account.ID { return "x" }, auth.Viewer), errs.NotFound, ""},
		{"an administrator that was disabled a moment ago", func(w world, t *testing.T, p people) error {
			if err := w.Operators.SetDisabled(t.Context(), account.By{ID: p.dan}, p.eve, true); err != nil {
				t.Fatal(err)
			}
			return w.Operators.SetRole(t.Context(), account.By{ID: p.eve}, p.vic, auth.Admin)
		}, errs.Denied, "not_admin"},
		{"the last one steps down", func(w world, t *testing.T, p people) error {
			if err := w.Operators.SetRole(t.Context(), account.By{ID: p.eve}, p.dan, auth.Support); err != nil {
				t.Fatal(err)
			}
			return w.Operators.SetRole(t.Context(), account.By{ID: p.eve}, p.eve, auth.Support)
		}, errs.Conflict, "last_admin"},
		{"the last one who is not disabled is removed", func(w world, t *testing.T, p people) error {
			if err := w.Operators.SetDisabled(t.Context(), account.By{ID: p.eve}, p.dan, true); err != nil {
				t.Fatal(err)
			}
			return w.Operators.Remove(t.Context(), account.By{ID: p.eve}, p.eve)
		}, errs.Conflict, "last_admin"},
		{"an owner's e-mail", func(w world, t *testing.T, p people) error {
			_, _, err := w.Operators.Add(t.Context(), account.By{ID: p.eve}, "own@example.com", auth.Viewer)
			return err
		}, errs.Conflict, "email_taken"},
		{"a viewer adds an administrator", func(w world, t *testing.T, p people) error {
			_, _, err := w.Operators.Add(t.Context(), account.By{ID: p.vic}, "new@example.com", auth.Admin)
			return err
		}, errs.Denied, "not_admin"},
		{"a viewer sets a password", func(w world, t *testing.T, p people) error {
			_, err := w.Operators.Reset(t.Context(), account.By{ID: p.vic}, p.eve)
			return err
		}, errs.Denied, "not_admin"},
		{"an owner's sessions", func(w world, t *testing.T, p people) error {
			_, err := w.Operators.EndSession(t.Context(), account.By{ID: p.eve}, p.own, "")
			return err
		}, errs.NotFound, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1000)
			p := people{w.create(t, "eve@example.com", auth.Admin).ID, w.create(t, "dan@example.com", auth.Admin).ID,
				w.create(t, "vic@example.com", auth.Viewer).ID, w.create(t, "own@example.com", auth.Owner).ID}
			head, err := w.Audit.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = c.do(w, t, p)
			if c.code == "" && c.kind == 0 {
				after, aerr := w.Audit.Head(t.Context())
				if err != nil || aerr != nil || after.Seq != head.Seq+1 {
					t.Errorf("%v; log from %d to %d, %v", err, head.Seq, after.Seq, aerr)
				}
				return
			}
			if err == nil || errs.KindOf(err) != c.kind || errs.CodeOf(err) != c.code {
				t.Errorf("got %v (%v %q), want %v %q", err, errs.KindOf(err), errs.CodeOf(err), c.kind, c.code)
			}
		})
	}
}

// Administrators who all demote each other at once, in two processes, leave one.
func TestOneAdministratorStays(t *testing.T) {
	w := newWorld(t, 1000)
	b := w.other(t)
	var all []account.By
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com"} {
		all = append(all, w.admin(t, email))
	}
	var wg sync.WaitGroup
	for i, by := range all {
		for j, of := range all {
			if i == j {
				continue
			}
			wg.Go(func() {
				svc := w.Accounts
				if i%2 == 1 {
					svc = b
				}
				var err error
				switch j % 3 {
				case 0:
					err = svc.Operators.SetRole(t.Context(), by, of.ID, auth.Viewer)
				case 1:
					err = svc.Operators.SetDisabled(t.Context(), by, of.ID, true)
				case 2:
					err = svc.Operators.Remove(t.Context(), by, of.ID)
				}
				if k := errs.KindOf(err); err != nil && k != errs.Denied && k != errs.Conflict && k != errs.NotFound {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	var n int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM account_account WHERE role = 'admin' AND NOT disabled`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d administrators are left, %v; want 1", n, err)
	}
}

// An operator's session ends when it was left alone, at its absolute end, and at once in another process when an administrator says so. A
// program's does not idle out; an owner's neither.
func TestOperatorSessions(t *testing.T) {
	w := newWorld(t, 1000)
	b := w.other(t)
	eve := w.admin(t, "eve@example.com")
	a := w.create(t, ada, auth.Support)
	w.create(t, "own@example.com", auth.Owner)
	login := func(email string) logging.Secret {
		t.Helper()
		l, err := w.Login(t.Context(), email, password, here)
		if err != nil {
			t.Fatal(err)
		}
		return l.Token
	}
	good := func(name string, token logging.Secret, want bool) {
		t.Helper()
		_, _, err := b.Authenticate(t.Context(), token, here)
		if (err == nil) != want || err != nil && errs.CodeOf(err) != "session_over" {
			t.Errorf("%s: %v, want good %v", name, err, want)
		}
	}
	one, two, owner := login(ada), login(ada), login("own@example.com")
	program, err := w.IssueSession(t.Context(), eve.ID, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Operators.Sessions(t.Context(), a.ID)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if n, err := w.Operators.EndSession(t.Context(), eve, a.ID, list[0].ID); n != 1 || err != nil {
		t.Error(n, err)
	}
	_, _, errOne := b.Authenticate(t.Context(), one, here)
	_, _, errTwo := b.Authenticate(t.Context(), two, here)
	if (errOne == nil) == (errTwo == nil) {
		t.Errorf("one of two should have ended: %v, %v", errOne, errTwo)
	}
	if _, err := w.Operators.EndSession(t.Context(), eve, a.ID, list[0].ID); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
	if n, err := w.Operators.EndSession(t.Context(), eve, a.ID, ""); n != 1 || err != nil {
		t.Error(n, err)
	}
	good("ended", one, false)
	good("ended", two, false)

	used, left := login(ada), login(ada)
	for range 5 {
		w.sleep(6 * time.Hour)
		good("used every six hours", used, true)
	}
	if still, err := b.StillGood(t.Context(), left, a); still || err != nil {
		t.Errorf("a stream of a session left alone goes on: %v", err)
	}
	good("left alone for 30 hours", left, false)
	good("an owner's, left alone", owner, true)
	good("a program's, left alone", program.Token, true)
	for range 7 * 4 {
		w.sleep(6 * time.Hour)
		_, _, _ = w.Authenticate(t.Context(), used, here)
	}
	good("used for more than a week", used, false)

	before := login(ada)
	if still, err := b.StillGood(t.Context(), before, a); !still || err != nil {
		t.Error(err)
	}
	first := a
	first.MustChange = true
	if still, err := b.StillGood(t.Context(), before, first); !still || err != nil {
		t.Errorf("who has another password than the first is stopped: %v", err)
	}
	if err := w.Operators.SetRole(t.Context(), eve, a.ID, auth.Viewer); err != nil {
		t.Fatal(err)
	}
	if still, err := b.StillGood(t.Context(), before, a); still || err != nil {
		t.Errorf("a stream goes on with the old role: %v", err)
	}
	if err := w.Operators.SetDisabled(t.Context(), eve, a.ID, true); err != nil {
		t.Fatal(err)
	}
	good("disabled", before, false)
}

// TestOperatorIsRemoved: a removed operator is erased like an owner, but for the name in what they did, which is looked into when they are gone (issue 28.11),
// and for the addresses in these lines, which go with their age. The log stays whole.
func TestOperatorIsRemoved(t *testing.T) {
	h := newHome(t)
	eve := h.admin(t, "eve@example.com")
	a, first, err := h.Operators.Add(t.Context(), eve, ada, auth.Support)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Login(t.Context(), ada, first, "192.0.2.77"); err != nil {
		t.Fatal(err)
	}
	if err := h.Operators.Remove(t.Context(), eve, a.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := h.Operators.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != eve.ID {
		t.Errorf("%+v %v", list, err)
	}
	if err := h.Operators.Remove(t.Context(), eve, a.ID); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
	if err := h.o.Privacy.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for text, where := range map[string]string{ada: "account_former", "192.0.2.77": "account_audit_addr"} {
		if got := h.everywhere(t, text); len(got) != 1 || got[0] != where {
			t.Errorf("%s is in %v, want %s alone", text, got, where)
		}
	}
	lines, err := h.Audit.Lines(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, l := range lines {
		if l.ByName() == ada {
			named["by "+l.Action]++
		}
		if l.OnName() == ada {
			named["on "+l.Action]++
		}
	}
	if want := (map[string]int{"by login": 1, "on login": 1, "on operator.add": 1, "on operator.remove": 1, "on account.deleted": 1}); !maps.Equal(named, want) {
		t.Errorf("lines with the operator's name: %v, want %v", named, want)
	}
	if r := h.verify(t, audit.Anchor{}); !r.Done {
		t.Errorf("%+v", r)
	}
}
