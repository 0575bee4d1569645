package tokens

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/jdocs"
)

// Run keeps the access token fresh and the list of clients known until ctx ends. It is a service of the runner.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { a.refresher(ctx) })
	wg.Go(func() { a.reader(ctx) })
	wg.Wait()
	return nil
}

// Connected says that there is a connection: waiting requests are tried now, and the document is read, at the pace allowed for strangers.
func (a *Agent) Connected() {
	a.mu.Lock()
	a.next, a.pause = time.Time{}, firstPause
	read := a.version == 0 || a.strangers.allow(a.cfg.Now())
	a.mu.Unlock()
	a.wake.Set()
	if read {
		a.reread.Set()
	}
}

// Hint says which versions of documents the cloud has (infra/api/hints): a client that was revoked there is out here as soon as this is heard.
func (a *Agent) Hint(docs map[string]uint64) {
	v, ok := docs[string(jdocs.AppTokens)]
	a.mu.Lock()
	news := ok && v != a.version
	a.mu.Unlock()
	if news {
		a.reread.Set()
	}
}

// Force says that a server refused the access token (PermissionDenied): it is refreshed at once; if that fails, the refresh is repeated for an hour.
func (a *Agent) Force() {
	a.mu.Lock()
	if a.forced.IsZero() && a.jwt != "" && !a.refused {
		a.forced, a.next, a.pause = a.cfg.Now(), time.Time{}, firstPause
	}
	a.mu.Unlock()
	a.wake.Set()
}

// refresher refreshes when it is time.
func (a *Agent) refresher(ctx context.Context) {
	for {
		if due := a.due(); due > 0 {
			// In steps of a minute, because the clock may be corrected in between.
			if !a.sleep(ctx, min(due, time.Minute)) {
				return
			}
			continue
		}
		a.asking.Lock()
		err := a.refresh(ctx)
		a.asking.Unlock()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.cfg.Log.WarnContext(ctx, "access token not refreshed", "err", err)
		}
	}
}

// due returns how long the refresher has nothing to do.
func (a *Agent) due() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jwt == "" || a.refused {
		return idleLook
	}
	now := a.cfg.Now()
	if !a.forced.IsZero() && now.Sub(a.forced) > forcedFor {
		a.forced, a.next, a.pause = time.Time{}, now.Add(idleLook), firstPause
	}
	at := a.access.Expires.Add(-refreshAhead)
	if !a.forced.IsZero() {
		at = a.forced
	}
	if a.next.After(at) {
		at = a.next
	}
	return at.Sub(now)
}

func (a *Agent) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-a.wake:
	case <-t.C:
	}
	return true
}

// Refresh makes a new access token now.
func (a *Agent) Refresh(ctx context.Context) error {
	a.asking.Lock()
	defer a.asking.Unlock()
	return a.refresh(ctx)
}

// refresh asks for a new access token. The caller holds asking.
func (a *Agent) refresh(ctx context.Context) error {
	jwt, ok := a.JWT()
	if !ok {
		return errs.New(errs.Unauthenticated, "no access token to refresh: the owner must sign in with an app")
	}
	b, err := a.ask(ctx, tokenwire.RefreshMethod, tokenwire.Refresh{AccessToken: jwt.Reveal(), JWT: true})
	if err == nil && b.Token == "" {
		err = errs.New(errs.Corrupt, "no access token in the answer")
	}
	if err == nil {
		err = a.store(logging.Secret(b.Token))
	}
	a.note(err)
	if err == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errs.KindOf(err) == errs.Denied { // the cloud's last word on this token
		a.refused, a.forced = true, time.Time{}
		a.problem = "the cloud does not take the robot's access token any more; the owner logs in with the app again: " + a.problem
		a.cfg.Doubt()
		return err
	}
	d := max(a.pause+rand.N(a.pause/10), errs.RetryOf(err))
	a.next = a.cfg.Now().Add(d)
	a.pause = min(time.Duration(float64(a.pause)*pauseFactor), maxPause)
	return err
}

// reader reads the document on demand, and repeats until it succeeds.
func (a *Agent) reader(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.reread:
		}
		for {
			err := a.readClients(ctx)
			if err == nil || ctx.Err() != nil {
				pause = firstPause
				break
			}
			a.cfg.Log.WarnContext(ctx, "client list not read", "doc", string(jdocs.AppTokens), "err", err)
			select {
			case <-ctx.Done():
				return
			case <-a.reread: // a connection, or another hint
			case <-time.After(max(pause+rand.N(pause/10), errs.RetryOf(err))):
			}
			pause = min(time.Duration(float64(pause)*pauseFactor), maxPause)
		}
	}
}

// readClients replaces the hashes by those of the cloud's document.
func (a *Agent) readClients(ctx context.Context) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	for {
		a.mu.Lock()
		version, added := a.version, a.added
		a.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, askTime)
		res, err := a.cfg.Docs.Read(ctx, []jdocs.Item{{Name: jdocs.AppTokens, MyVersion: version}})
		cancel()
		if err != nil {
			return err
		}
		if len(res) != 1 {
			return errs.New(errs.Corrupt, "%d results, want 1", len(res))
		}
		again, err := a.take(res[0], added)
		if err != nil || !again {
			return err
		}
	}
}

// take applies an answer; again says that it was overtaken.
func (a *Agent) take(r jdocs.ReadResult, added uint64) (again bool, err error) {
	var h hashes
	switch r.Status {
	case jdocs.Changed:
		if h, err = parseHashes([]byte(r.Doc.JSON)); err != nil {
			return false, errs.New(errs.Corrupt, "%s version %d: %w", jdocs.AppTokens, r.Doc.Version, err)
		}
	case jdocs.NotFound: // no client may talk to the robot
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.added != added {
		a.version = 0 // the answer may lack a client that was added in between
		return true, nil
	}
	a.read = a.cfg.Now()
	if r.Status == jdocs.Unchanged {
		return false, nil
	}
	if err := writeHashes(a.cfg.Root, h); err != nil {
		return false, a.fault(err)
	}
	a.hashes, a.version = h, r.Doc.Version
	return false, nil
}

// Authorized reports whether bearer is the token of a client (see Client).
func (a *Agent) Authorized(ctx context.Context, bearer string) bool {
	_, ok := a.Client(ctx, bearer)
	return ok
}

// Client returns the entry of a client token (VEC-AUTH-06, part of VEC-AUTH-09); false if there is none, or if it has expired. The hashes on the
// robot decide, with the cloud or without. For an unknown bearer the document is read again, unless strangers made the robot read it too often;
// ctx bounds that.
func (a *Agent) Client(ctx context.Context, bearer string) (Client, bool) {
	a.mu.Lock()
	c, known := a.hashes.client(bearer)
	_, formed := parseBearer(bearer)
	look := !known && formed && a.strangers.allow(a.cfg.Now())
	a.mu.Unlock()
	if look && a.readClients(ctx) == nil { // without the cloud no new client gets access (VEC-AUTH-11)
		a.mu.Lock()
		c, known = a.hashes.client(bearer)
		a.mu.Unlock()
	}
	if !known || !c.lasts(a.cfg.Now()) {
		return Client{}, false
	}
	return c, true
}
