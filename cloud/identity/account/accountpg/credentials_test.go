package accountpg_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
)

// One code used by many at the same moment works once.
func TestACodeWorksOnce(t *testing.T) {
	h := newHome(t)
	h.signUp(t, ada)
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	code := logging.Secret(h.one(t).code)
	app, err := h.o.Apps.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	var burned, reset atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := h.o.Apps.Burn(t.Context(), app.Token, "vic:1"); err == nil {
				burned.Add(1)
			} else if c := errs.CodeOf(err); c != "session_used" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 10 {
		wg.Go(func() {
			if err := h.o.Letters.Reset(t.Context(), code, "battery staple", here); err == nil {
				reset.Add(1)
			} else if errs.CodeOf(err) != "code_refused" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if burned.Load() != 1 || reset.Load() != 1 {
		t.Errorf("burned %d times, reset %d times", burned.Load(), reset.Load())
	}
}

func TestChangeEmail(t *testing.T) {
	h := newHome(t)
	a := h.signUp(t, ada)
	h.signUp(t, "bob@example.com")
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, "new@example.com", "wrong password", here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("without the password: %v", err)
	}
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, ada, password, here); errs.KindOf(err) != errs.Invalid {
		t.Errorf("the same: %v", err)
	}
	// Taken or not, the answer is the same.
	for _, email := range []string{"bob@example.com", "New@example.com"} {
		if err := h.o.Letters.AskEmail(t.Context(), a.ID, email, password, here); err != nil {
			t.Errorf("%s: %v", email, err)
		}
	}
	var code string
	for _, l := range h.letters(t) {
		switch l.to {
		case "bob@example.com":
			if l.code != "" || !strings.Contains(l.subject, "already") || strings.Contains(l.text, ada) {
				t.Errorf("bob: %+v", l)
			}
		case "new@example.com":
			code = l.code
		}
	}
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); err != nil {
		t.Fatal(err)
	}
	if l := h.one(t); l.to != ada || !strings.Contains(l.text, "new@example.com") {
		t.Errorf("the old address is told: %+v", l)
	}
	if _, err := h.Login(t.Context(), "new@example.com", password, here); err != nil {
		t.Error(err)
	}
	if _, err := h.Login(t.Context(), ada, password, here); errs.CodeOf(err) != "login_refused" {
		t.Error(err)
	}
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); errs.CodeOf(err) != "code_refused" {
		t.Errorf("twice: %v", err)
	}
	// Another person gets an account for it between letter and click.
	if err := h.o.Letters.AskEmail(t.Context(), a.ID, "third@example.com", password, here); err != nil {
		t.Fatal(err)
	}
	code = h.one(t).code
	h.create(t, "third@example.com", auth.Owner)
	if err := h.o.Letters.ChangeEmail(t.Context(), logging.Secret(code), here); errs.CodeOf(err) != "email_taken" {
		t.Errorf("taken meanwhile: %v", err)
	}
}

// Letters are paced by the address they go to, for all askers together, and by the asker.
func TestLettersArePaced(t *testing.T) {
	h := newHome(t, func(c *ownersConfig) { c.ByAddr = ratelimit.NewByAddr(time.Hour, 200) })
	h.signUp(t, ada)
	for _, email := range []string{ada, "nobody@example.com"} {
		sent := 0
		for i := range 100 {
			switch err := h.o.Letters.AskReset(t.Context(), email, "", fmt.Sprintf("198.51.100.%d", i)); errs.KindOf(err) {
			case errs.Exhausted:
				if errs.RetryOf(err) <= 0 {
					t.Fatal("no pause named")
				}
			default:
				if err != nil {
					t.Fatal(err)
				}
				sent++
			}
			h.sleep(time.Second)
		}
		if sent != 4 { // three at once, one after a minute
			t.Errorf("%s: %d letters in 100 s, want 4", email, sent)
		}
	}
	refused := 0
	for i := range 300 {
		if err := h.o.Letters.AskReset(t.Context(), fmt.Sprintf("p%d@example.com", i), "", "203.0.113.1"); errs.KindOf(err) == errs.Exhausted {
			refused++
		}
	}
	if refused != 100 {
		t.Errorf("%d of 300 from one address refused, want 100", refused)
	}
	var many atomic.Int64
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if h.o.Letters.AskReset(t.Context(), "flood@example.com", "", here) == nil {
				many.Add(1)
			}
		})
	}
	wg.Wait()
	if many.Load() > 6 {
		t.Errorf("%d letters at once", many.Load())
	}
}

func TestSessionsOfAnOwner(t *testing.T) {
	h := newHome(t)
	a, b := h.signUp(t, ada), h.signUp(t, "bob@example.com")
	var logins []account.Login
	for range 3 {
		l, err := h.Login(t.Context(), ada, password, here)
		if err != nil {
			t.Fatal(err)
		}
		logins = append(logins, l)
		h.sleep(time.Second)
	}
	app, until, err := h.o.Apps.Issue(t.Context(), a.ID)
	if err != nil || until.Sub(*h.now.Load()) != account.DefaultAppTTL || strings.Contains(fmt.Sprintf("%v%+v%#v", app, app, app), app.Reveal()) {
		t.Fatalf("%v %v", until, err)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app, "vic:00e20100"); err != nil {
		t.Fatal(err)
	}
	list, mine, err := h.Sessions(t.Context(), a.ID, logins[2].Token)
	if err != nil || len(list) != 4 || !list[0].App || list[0].Used != "vic:00e20100" || list[1].ID != mine || list[1].Addr != here {
		t.Fatalf("%+v %q %v", list, mine, err)
	}
	if strings.Contains(logins[2].Token.Reveal(), mine) {
		t.Error("a session's name is part of its token")
	}
	if err := h.EndSession(t.Context(), b.ID, list[3].ID, here); errs.KindOf(err) != errs.NotFound {
		t.Errorf("somebody else's session: %v", err)
	}
	if err := h.EndSession(t.Context(), a.ID, list[3].ID, here); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Authenticate(t.Context(), logins[0].Token, here); errs.CodeOf(err) != "session_over" {
		t.Errorf("ended: %v", err)
	}
	if n, err := h.EndOtherSessions(t.Context(), a.ID, logins[2].Token, here); err != nil || n != 2 {
		t.Errorf("ended %d, %v", n, err)
	}
	if _, _, err := h.Authenticate(t.Context(), logins[2].Token, here); err != nil {
		t.Errorf("the one that asked: %v", err)
	}
	if _, err := h.o.Apps.Session(t.Context(), app); errs.CodeOf(err) != "session_over" {
		t.Errorf("the app's: %v", err)
	}
}
