package ownership

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/core/corelink"
	"kennel/edge/env/envtest"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

type asked struct{ t *testing.T }

func (a asked) Do(_ context.Context, service, method string, _ []byte) ([]byte, error) {
	a.t.Errorf("%s/%s is asked", service, method)
	return nil, nil
}

// newHost returns the host of a robot below root, with a part that hears.
func newHost(t *testing.T, root *os.Root, hears ...host.Hearing) *host.Host {
	t.Helper()
	h := host.New(host.Robot{Root: root, Hardware: envtest.Hardware{}, Thing: "vic:00e20100", Log: slog.New(slog.DiscardHandler), Emit: func(events.Event) {}, Now: time.Now})
	if err := h.Add(host.Part{Name: "test", Hears: hears}); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestUnowned: a robot of a fleet in one process has no owner's side: it introduces itself without a word, and everything may leave it over each connection.
func TestUnowned(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var heard []string
	h := newHost(t, root, host.On(func(host.Unowned) { heard = append(heard, "unowned") }), host.On(func(host.MaySync) { heard = append(heard, "sync") }))
	p := Unowned(h, asked{t}, func() bool { return true })
	if err := h.Add(p); err != nil {
		t.Fatal(err)
	}
	h.Publish(host.LinkUp{})
	if !slices.Equal(heard, []string{"unowned", "sync"}) || len(p.Services) != 1 || p.Services[0].Name != "introduction" || len(h.Local()) > 0 {
		t.Errorf("heard %v, services %v, requests %v", heard, p.Services, h.Local())
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := p.Services[0].Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestProfileSessions is VEC-DAS-18: another profile ends the session of the one before; the same one is only said again.
func TestProfileSessions(t *testing.T) {
	var got []string
	p := &People{Robot: host.Robot{Emit: func(e events.Event) { got = append(got, e.Name+" "+e.S1) }}}
	for _, id := range []string{"a", "a", "b"} {
		p.profileIs(id)
	}
	want := []string{"profile_id.start a", "profile_id.start a", "profile_id.stop a", "profile_id.start b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// cloudOf answers who the owner is.
type cloudOf struct {
	mu     sync.Mutex
	status owners.Status
}

func (c *cloudOf) is(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = owners.Status{Owned: user != "", UserID: user, DataCollection: true}
}

func (c *cloudOf) Do(_ context.Context, service, method string, _ []byte) ([]byte, error) {
	if service != owners.Service || method != owners.StatusMethod {
		return nil, errs.New(errs.Unavailable, "%s/%s", service, method)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return owners.Encode(c.status)
}

// TestTenureEnds: when the cloud names another owner, nothing of the former one is sent and nothing of the next one is taken before agentd has ended
// and erased what it held.
func TestTenureEnds(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const photo = "data/data/com.anki.victor/persistent/photos/1.jpg"
	cloud := &cloudOf{}
	// life runs the relations until they want to end, or said consent as often.
	life := func(consents int, next string) (ended bool) {
		t.Helper()
		heard, restart, held := make(chan string, 16), make(chan error, 16), make(chan bool, 16)
		h := newHost(t, root, host.On(func(s host.Consent) { heard <- s.UserID }), host.On(func(host.Withhold) { held <- true }))
		if err := Clear(h.Robot); err != nil {
			t.Fatal(err)
		}
		p, err := New(h, Config{Ask: cloud, Linked: func() bool { return true }, Believed: time.Now, Fault: func(faultcode.Code, error) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.claim.Run(ctx) }()
		go func() { restart <- h.Services()[0].Run(ctx) }()
		defer func() {
			stop()
			_ = testwait.For(t, done, "the end of the claim")
		}()
		for range consents {
			p.Look()
			testwait.For(t, heard, "the owner")
		}
		cloud.is(next)
		p.Look()
		select {
		case <-restart:
			testwait.For(t, held, "word that nothing may leave")
			if len(heard) > 0 {
				t.Errorf("the owner is %q before the former one's data are gone", <-heard)
			}
			return true
		case user := <-heard:
			if user != next {
				t.Errorf("heard %q, want %q", user, next)
			}
			return false
		case <-time.After(time.Minute):
			t.Fatal("nothing is heard of the owner")
			return false
		}
	}
	for i, tc := range []struct {
		consents int
		next     string
		ended    bool
	}{
		{1, "ann", false}, // the first owner
		{1, "ann", false}, // after a restart
		{1, "bob", true},  // while it is connected
		{1, "", true},     // released
		{0, "bob", false}, // claimed
		{0, "ann", true},  // handed on while it was away
	} {
		if err := robotfs.WriteFile(root, photo, []byte("photo"), 0o600); err != nil {
			t.Fatal(err)
		}
		ended := life(tc.consents, tc.next)
		if ended != tc.ended {
			t.Errorf("%d: agentd ends %v, want %v", i, ended, tc.ended)
		}
		if err := Clear(host.Robot{Root: root, Hardware: envtest.Hardware{}, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		if _, err := root.Stat(photo); (err == nil) == ended {
			t.Errorf("%d: agentd ended %v, and the photo: %v", i, ended, err)
		}
	}
}

// TestConfirm: the next owner may ask for logs before the robot knows of them; they get none of the former owner's.
func TestConfirm(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cloud, former := &cloudOf{}, 0
	h := newHost(t, root, host.On(func(host.Withhold) { former++ }))
	p, err := New(h, Config{Ask: cloud, Believed: time.Now, Fault: func(faultcode.Code, error) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user string
		kind errs.Kind
		ends int
	}{{"ann", 0, 0}, {"ann", 0, 0}, {"bob", errs.Unavailable, 1}, {"bob", errs.Unavailable, 2}} {
		cloud.is(tc.user)
		if err := p.Confirm(t.Context()); tc.kind == 0 && err != nil || tc.kind != 0 && errs.KindOf(err) != tc.kind || former != tc.ends {
			t.Errorf("%s: %v, %d", tc.user, err, former)
		}
	}
	if err := h.Services()[0].Run(t.Context()); !host.Ended(err) {
		t.Errorf("agentd ends with %v", err)
	}
}

// between is a cloud whose answer to the first question comes after something happened.
type between struct {
	*cloudOf
	happens func()
}

func (b *between) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	answer, err := b.cloudOf.Do(ctx, service, method, body)
	if b.happens != nil {
		b.happens()
	}
	return answer, err
}

// TestWordOfAnEarlierConnection (VEC-DAS-08): what the cloud answered before the robot dialled again, or before the cloud told it of a no, opens nothing.
func TestWordOfAnEarlierConnection(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	consents := 0
	h := newHost(t, root, host.On(func(host.Consent) { consents++ }))
	cloud := &between{cloudOf: &cloudOf{}}
	cloud.is("ann")
	p, err := New(h, Config{Ask: cloud, Linked: func() bool { return true }, Believed: time.Now, Fault: func(faultcode.Code, error) {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(p.Part()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		happens func()
		want    int
	}{{"nothing happens", nil, 1}, {"the robot dials", func() { h.Publish(host.Dialing{}) }, 1}, {"the cloud doubts", func() { h.Publish(host.Doubt{}) }, 1}, {"asked again", nil, 2}} {
		cloud.happens = tc.happens
		if err := p.Confirm(t.Context()); (tc.happens == nil) != (err == nil) || err != nil && errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v", tc.name, err)
		}
		if consents != tc.want {
			t.Errorf("%s: consent was told %d times, want %d", tc.name, consents, tc.want)
		}
	}
}

// codes hears which codes are asked for, and answers that the robot has an owner.
type codes struct {
	cloudOf
	asked chan string
}

func (c *codes) Do(ctx context.Context, service, method string, b []byte) ([]byte, error) {
	if method == owners.CodeMethod {
		c.asked <- method
	}
	return c.cloudOf.Do(ctx, service, method, b)
}

// TestDoublePress: two presses of the button on the charger ask for a claim code, which they did not do before; another gesture, and one from before the agent came, do not.
func TestDoublePress(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cloud := &codes{asked: make(chan string, 16)}
	cloud.is("ann") // a robot without an owner asks by itself
	h := newHost(t, root)
	p, err := New(h, Config{Ask: cloud, Linked: func() bool { return true }, Believed: time.Now, Fault: func(faultcode.Code, error) {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(p.Part()); err != nil {
		t.Fatal(err)
	}
	press := func(gesture string, replayed bool) {
		h.Publish(corelink.Message(&corelink.Event{Name: "robot.button", Texts: []string{gesture}, Replayed: replayed}))
	}
	press("single", false)
	press("double", true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.claim.Run(ctx) }()
	if err := p.claim.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(cloud.asked); n > 0 {
		t.Errorf("%d codes were asked for before the second press", n)
	}
	press("double", false)
	testwait.For(t, cloud.asked, "the request for a code")
	stop()
	_ = testwait.For(t, done, "the end of the claim")
}
