package owner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/quotedprintable"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/owner"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// post is a mail service: its outbox and its transport are lists.
type post struct {
	mail.Outbox
	t *testing.T

	mu     sync.Mutex
	fails  error  // of every letter to failTo
	failTo string // "": of every letter
	mails  []mail.Mail
	sent   chan mail.Mail
}

func newPost(t *testing.T) *post { return &post{t: t, sent: make(chan mail.Mail, 1000)} } // more than any test posts

func (p *post) Post(_ context.Context, m mail.Mail) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil && (p.failTo == "" || p.failTo == m.To) {
		return p.fails
	}
	m.ID = fmt.Sprint("mail-", len(p.mails))
	m.Expires = time.Now().Add(time.Hour)
	p.mails = append(p.mails, m)
	p.sent <- m
	return nil
}

func (p *post) fail(to string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failTo, p.fails = to, err
}

func (p *post) Get(_ context.Context, id string) (mail.Mail, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.mails {
		if m.ID == id {
			return m, nil
		}
	}
	return mail.Mail{}, mail.ErrUnknown
}

func (*post) Remove(context.Context, string) error { return nil }

// paper keeps the last message.
type paper struct{ mail.Message }

func (p *paper) Send(_ context.Context, m mail.Message) error { p.Message = m; return nil }

// write returns the letter as it leaves, readable.
func (p *post) write(svc *owner.Service, m mail.Mail) string {
	p.t.Helper()
	var out paper
	s, err := mail.New(mail.Config{Outbox: p, Compose: svc.Compose, Transport: &out, From: "home@example.org", Log: slog.New(slog.DiscardHandler),
		Addresses: func(context.Context, string) ([]string, error) { return nil, nil }})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.Send(p.t.Context(), m.ID); err != nil {
		p.t.Fatal(err)
	}
	raw, err := out.Bytes()
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(raw)))
	if err != nil {
		p.t.Fatal(err)
	}
	text, _, ok := bytes.Cut(text, []byte("text/html"))
	if !ok {
		p.t.Fatalf("no text and HTML in %s", text)
	}
	return string(text)
}

// posted runs the processes until n letters are posted, and returns them by reader; left are those that wait then.
func (h *house) posted(p *post, n, left int, all ...process) (out []mail.Mail) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, x := range all {
		wg.Go(func() { _ = x.Run(ctx) }) // nil by contract
	}
	for len(out) < n {
		select {
		case m := <-p.sent:
			out = append(out, m)
		case <-ctx.Done():
			p.t.Fatalf("%d letters, want %d: %v", len(out), n, out)
		}
	}
	cancel()
	wg.Wait()
	if len(p.sent) > 0 {
		p.t.Errorf("one letter more: %+v", <-p.sent)
	}
	if w := h.waiting(all[0]); w != left {
		p.t.Errorf("%d letters wait, want %d", w, left)
	}
	slices.SortFunc(out, func(a, b mail.Mail) int { return strings.Compare(a.To+a.Kind, b.To+b.Kind) })
	return out
}

// waiting counts what is still to be told.
func (h *house) waiting(p process) (n int) {
	h.t.Helper()
	if err := p.pool.QueryRow(h.t.Context(), `SELECT count(*) FROM owner_news`).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// lettered is a house whose people read: ann German, bob nothing in particular.
func lettered(t *testing.T) (*house, *post) {
	h := newHouse(t)
	h.mail = newPost(t)
	h.emails["ann"], h.emails["bob"], h.langs = "ann@example.org", "bob@example.org", map[string]string{"ann": "de-AT"}
	return h, h.mail
}

// TestLetters: a person who gets or loses a robot, in any way, is told in their language what happened and what to do if they did not do it.
func TestLetters(t *testing.T) {
	h, p := lettered(t)
	a := h.process()
	ctx := t.Context()
	name := func() {
		_, err := a.Rename(ctx, "ann", rex, "Schnuffi")
		must(t, err)
	}
	associate := func(account, how string) { must(t, a.Associate(ctx, rex, account, how)) }
	const forgot = "https://kennel.example/account/forgot"
	type want struct {
		to, kind string
		says     []string
		not      string
	}
	for _, c := range []struct {
		name string
		do   func()
		want []want
	}{
		{"claimed by its code", func() { must(t, a.claim(t, "ann", rex, a.show(t, rex, "k1"))) },
			[]want{{"ann", "robot-gained", []string{"Der Roboter", "vic:00e20100", "Sein Code", forgot, "Passwort"}, "App"}}},
		{"claimed again: nothing new", func() { associate("ann", owner.HowAssociate) }, nil},
		{"handed on", func() {
			name()
			o, err := a.Offer(ctx, "ann", "ann@example.org", rex, "bob@example.org", owner.Proof{Password: "right"})
			must(t, err)
			_, err = a.Accept(ctx, "bob", "bob@example.org", o.ID)
			must(t, err)
		}, []want{{"ann", "robot-handed-on", []string{"Schnuffi (vic:00e20100)", "angeboten", forgot, "Betreiber", time.Now().UTC().Format("2006-01-02 ")}, "bob"},
			{"bob", "robot-gained", []string{"You have a new robot", "vic:00e20100", "offered it to you", forgot}, "Schnuffi"}}},
		{"taken by support", func() { must(t, a.TakeAway(ctx, "bob", rex)) },
			[]want{{"bob", "robot-taken", []string{"removed the robot vic:00e20100 from your account", "who did it and why", "add it again"}, forgot}}},
		{"signed in by an app", func() { associate("ann", owner.HowAssociate) },
			[]want{{"ann", "robot-gained", []string{"mit einer App bei deinem Konto angemeldet", forgot}, "Code eingegeben"}}},
		{"let go", func() { name(); must(t, a.Release(ctx, "ann", rex)) },
			[]want{{"ann", "robot-released", []string{"Schnuffi (vic:00e20100)", "entfernt", forgot}, ""}}},
		{"given up by the robot", func() { associate("bob", owner.HowAssociate); must(t, a.Disassociate(ctx, rex)) },
			[]want{{"bob", "robot-gained", nil, ""}, {"bob", "robot-left", []string{"signed out of your account", "lock it out", "add it again"}, "wiped"}}},
		{"wiped", func() { associate("bob", owner.HowAssociate); must(t, a.Wiped(ctx, rex, "w1")) },
			[]want{{"bob", "robot-gained", nil, ""}, {"bob", "robot-left", []string{"user data of the robot vic:00e20100 was erased", "lock it out"}, "signed out"}}},
		{"wiped, told again", func() { must(t, a.Wiped(ctx, rex, "w1")) }, nil},
		{"wiped and signed in by another", func() { associate("bob", owner.HowAssociate); associate("ann", owner.HowWiped) },
			[]want{{"ann", "robot-gained", []string{"mit einer App"}, ""}, {"bob", "robot-gained", nil, ""}, {"bob", "robot-left", []string{"was erased"}, ""}}},
		{"refused: not one's own", func() {
			is(t, "release", a.Release(ctx, "bob", rex), errs.NotFound, "not_yours")
			is(t, "take away", a.TakeAway(ctx, "bob", rex), errs.NotFound, "no_owner")
		}, nil},
	} {
		c.do()
		if len(c.want) == 0 {
			if n := h.waiting(a); n != 0 {
				t.Errorf("%s: %d letters wait", c.name, n)
			}
			continue
		}
		got := h.posted(p, len(c.want), 0, a)
		for i, w := range c.want {
			m := got[i]
			if m.To != w.to+"@example.org" || m.Kind != w.kind || m.Account != w.to || m.Lang != h.langs[w.to] || !owner.Composes(m.Kind) {
				t.Errorf("%s: letter %+v, want %s to %s", c.name, m, w.kind, w.to)
				continue
			}
			text := strings.ReplaceAll(p.write(a.Service, m), "\r\n", "\n")
			for _, s := range w.says {
				if !strings.Contains(text, s) {
					t.Errorf("%s: letter to %s does not say %q:\n%s", c.name, w.to, s, text)
				}
			}
			if w.not != "" && strings.Contains(text, w.not) {
				t.Errorf("%s: letter to %s says %q:\n%s", c.name, w.to, w.not, text)
			}
		}
	}
}

// TestLettersOnce: processes side by side tell each change once; a letter that cannot be posted waits and holds up no other.
func TestLettersOnce(t *testing.T) {
	h, p := lettered(t)
	a, b := h.process(), h.process()
	const n = 40
	robot := func(i int) thing.ID { return thing.ID(fmt.Sprintf("vic:00e3%04x", i)) }
	for i := range n {
		must(t, a.Associate(t.Context(), robot(i), []string{"ann", "bob"}[i%2], owner.HowAssociate))
	}
	seen := map[string]int{}
	p.fail("ann@example.org", errors.New("away"))
	for _, m := range h.posted(p, n/2, n/2, a, b) {
		seen[m.Data["thing"]]++
	}
	p.fail("", nil)
	for _, m := range h.posted(p, n/2, 0, a, b) {
		seen[m.Data["thing"]]++
	}
	for i := range n {
		if seen[string(robot(i))] != 1 {
			t.Errorf("%s: %d letters", robot(i), seen[string(robot(i))])
		}
	}
}

// TestNobodyToTell: who has left, whose address is none, and what is too old: there is no letter, and nothing waits for ever.
func TestNobodyToTell(t *testing.T) {
	h, p := lettered(t)
	h.emails["eve"] = "not an address"
	a := h.process()
	ctx := t.Context()
	p.fail("not an address", errs.New(errs.Invalid, "want an address"))
	must(t, a.Associate(ctx, rex, "gone", owner.HowAssociate))
	must(t, a.Associate(ctx, ada, "eve", owner.HowAssociate))
	must(t, a.Associate(ctx, "vic:00e20102", "bob", owner.HowAssociate))
	if _, err := a.pool.Exec(ctx, `UPDATE owner_news SET at = at - interval '2 days'`); err != nil {
		t.Fatal(err)
	}
	must(t, a.Associate(ctx, "vic:00e20103", "gone", owner.HowAssociate))
	must(t, a.Associate(ctx, "vic:00e20104", "eve", owner.HowAssociate))
	must(t, a.Associate(ctx, "vic:00e20105", "bob", owner.HowAssociate)) // the last, and the only one that leads to a letter
	if got := h.posted(p, 1, 0, a); got[0].To != "bob@example.org" || got[0].Data["thing"] != "vic:00e20105" {
		t.Errorf("%+v", got)
	}
	// Erased before the letter was posted: no data of the person are left, and no letter is sent.
	must(t, a.Release(ctx, "bob", "vic:00e20105"))
	must(t, a.Erase(ctx, "bob"))
	if got := a.mentions(t, "bob"); len(got) > 0 || h.waiting(a) > 0 {
		t.Errorf("%q, %d letters wait", got, h.waiting(a))
	}
	if _, _, err := a.Compose(ctx, mail.Mail{Kind: "reset"}); err == nil || owner.Composes("reset") {
		t.Error("writes another domain's letters")
	}
	if _, _, err := a.Compose(ctx, mail.Mail{Kind: "robot-gained"}); err == nil {
		t.Error("a letter without a time")
	}
}
