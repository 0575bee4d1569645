package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/api/envelope"
	"kennel/infra/api/status"
	"kennel/infra/bench"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

const (
	consoleThings  = 10_000
	consoleQuick   = 300              // of them in a quick run
	consoleChanges = 1000             // comings and goings in a second
	consoleLeast   = 0.95             // the share of these that must have happened
	consoleWarm    = 2 * time.Second  // of changes, before anything is measured
	consoleAlone   = 5 * time.Second  // without consoles, in one turn
	consoleTime    = 10 * time.Second // with them
	consoleCores   = 0.5              // that kenneld may take for them
	consoleSettle  = 5 * time.Second  // until the last page is right
	flockAtOnce    = 16
	flockStride    = 7919 // a prime: neighbours in the table do not come and go one after the other
	flockFirst     = 0x00c00000
	flockStay      = time.Second // of one that comes and goes
	flockHome      = time.Hour   // of the others
	firstPageTime  = 30 * time.Second
)

// fleetViews are what the people at the consoles look at.
func fleetViews(ids []thing.ID) []fleetView {
	middle := string(ids[len(ids)/2])
	return []fleetView{
		{},
		{},
		{query: "?after=" + url.QueryEscape(middle), after: middle},
		{query: "?q=presence%3Apresent", filtered: true, keep: isPresent},
		{query: "?q=presence%3Aabsent", filtered: true, keep: isAbsent},
		{query: "?sort=-since", order: bySince, down: true},
		{query: "?q=presence%3Aabsent&sort=since", filtered: true, keep: isAbsent, order: bySince},
		{query: "?q=presence%3Apresent&sort=-since", filtered: true, keep: isPresent, order: bySince, down: true},
		{query: "?sort=presence", order: byPresence},
		{query: "?q=00c000", filtered: true, keep: func(r fleetRow) bool { return strings.Contains(r.ID, "00c000") }},
	}
}

// BenchmarkConsolesBesideBudget lets ten people look at the table of a fleet in which a thousand robots come or go each second (issue 5). What kenneld takes with
// them, less what it takes of the same changes without them, of a budget of half a core; and how soon after the last change every page shows
// what the registry holds. No page on the way may show a robot twice, or one that it was not asked for, or in the wrong order.
//
// Robots come by way of the registry's rules for leases and its store, in this process, with its hints to every listener: ten thousand TLS
// connections through the broker would leave the consoles no processor to be measured on. They go without a word: it is kenneld that ends leases.
func BenchmarkConsolesBesideBudget(b *testing.B) { consolesBesideBudget(b) }

func TestConsolesBesideBudget(t *testing.T) {
	bench.Soak(t)
	consolesBesideBudget(t)
}

func consolesBesideBudget(tb testing.TB) {
	ctx := tb.Context()
	h, err := startHouse(ctx, programs(tb))
	if err != nil {
		tb.Fatal(err)
	}
	defer h.Stop()
	dsn, err := os.ReadFile(h.File("postgres_dsn"))
	if err != nil {
		tb.Fatal(err)
	}
	pool, err := pg.Open(ctx, pg.Config{DSN: strings.TrimSpace(string(dsn)), AppName: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	defer pool.Close()
	things, changes := consoleThings, bench.Part(tb, consoleChanges)
	if bench.Quick(tb) {
		things = consoleQuick
	}
	f, err := newFlock(ctx, pool, things)
	if err != nil {
		tb.Fatal(err)
	}
	views := fleetViews(f.ids)
	sessions, err := consoleSessions(ctx, tb, h, pool, len(views))
	if err != nil {
		tb.Fatal(err)
	}
	var cores, database, settle []bench.Pair
	var all consoleTurn
	bench.Turns(tb, func() error {
		t, err := consoleOnce(ctx, tb, h, f, changes, views, sessions)
		cores = append(cores, bench.Pair{Value: t.cores, Reference: consoleCores})
		database = append(database, bench.Pair{Value: t.databaseWith, Reference: t.databaseWithout})
		settle = append(settle, bench.Pair{Value: t.settle.Seconds(), Reference: consoleSettle.Seconds()})
		all.pages, all.bytes, all.rate, all.again = all.pages+t.pages, all.bytes+t.bytes, all.rate+t.rate, all.again+t.again
		return err
	})
	bench.Report(tb, bench.Line{Name: "consoles/cpu", Unit: "cores", Less: true, Bound: 1,
		Note: fmt.Sprintf("kenneld with %d open consoles on the table of %d robots, less kenneld without them, at %.0f comings and goings a second (made by the registry's store "+
			"in another process, not over the broker); %d pages of %d KiB, %d streams began again; reference: the budget",
			len(views), things, all.rate/float64(len(cores)), all.pages, all.bytes/max(1, all.pages)/1024, all.again)}, cores)
	bench.Report(tb, bench.Line{Name: "consoles/postgres", Unit: "cores", Less: true, Note: "Postgres meanwhile; reference: without consoles, for the changes alone"}, database)
	bench.Report(tb, bench.Line{Name: "consoles/settle", Unit: "s", Less: true, Bound: 1,
		Note: "from the last change until every page shows the rows and the counts that the registry holds; reference: the budget"}, settle)
}

// consoleTurn holds the results of one turn.
type consoleTurn struct {
	cores                         float64 // of kenneld, for the consoles
	databaseWith, databaseWithout float64 // cores
	settle                        time.Duration
	rate                          float64 // changes a second
	pages, bytes, again           int
}

func consoleOnce(ctx context.Context, tb testing.TB, h *house, f *flock, perSecond int, views []fleetView, sessions []account.Login) (t consoleTurn, err error) {
	kenneld, err := h.Pid("kenneld")
	if err != nil {
		return t, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer fail(nil) // before the wait
	if err := f.rest(ctx); err != nil {
		return t, err
	}
	before, err := f.changes(ctx)
	if err != nil {
		return t, err
	}
	began := time.Now()
	still, stop := context.WithCancel(ctx)
	defer stop()
	flown := make(chan struct{})
	wg.Go(func() {
		defer close(flown)
		if err := f.fly(ctx, still.Done(), perSecond); err != nil {
			fail(fmt.Errorf("change presence: %w", err))
		}
	})
	if err := bench.Pass(ctx, bench.Part(tb, consoleWarm)); err != nil {
		return t, err
	}
	without, err := consoleBusy(ctx, h, kenneld, bench.Part(tb, consoleAlone))
	if err != nil {
		return t, err
	}
	screens := make([]*screen, len(views))
	fresh := make(chan struct{}, 1) // that a page came; one word is as good as many
	for i, v := range views {
		screens[i] = newScreen(h.URL("console"), sessions[i].Token.Reveal(), v, fresh)
		wg.Go(func() {
			if err := screens[i].watch(ctx); err != nil {
				fail(fmt.Errorf("console %d: %w", i+1, err))
			}
		})
	}
	if err := awaitScreens(ctx, fresh, firstPageTime, func() error {
		for _, s := range screens {
			if s.pages.Load() == 0 {
				return errors.New("a console has no page yet")
			}
		}
		return nil
	}); err != nil {
		return t, err
	}
	with, err := consoleBusy(ctx, h, kenneld, bench.Part(tb, consoleTime))
	if err != nil {
		return t, err
	}
	stop()
	<-flown
	flew := time.Since(began)
	if err := f.rest(ctx); err != nil { // those who came last go
		return t, err
	}
	stopped := time.Now()
	after, err := f.changes(ctx)
	if err != nil {
		return t, err
	}
	if t.rate = float64(after-before) / flew.Seconds(); !bench.Quick(tb) && t.rate < consoleLeast*float64(perSecond) {
		return t, fmt.Errorf("%.0f comings and goings a second: want %d", t.rate, perSecond)
	}
	fleet, err := f.fleet(ctx)
	if err != nil {
		return t, err
	}
	want := make([]fleetPage, len(views))
	for i, v := range views {
		want[i] = v.want(fleet)
	}
	if err := awaitScreens(ctx, fresh, consoleSettle-time.Since(stopped), func() error {
		for i, v := range views {
			if err := v.differs(*screens[i].now.Load(), want[i]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return t, fmt.Errorf("%v after the last change: %w", consoleSettle, err)
	}
	t.settle = time.Since(stopped)
	t.cores = max(with.kenneld-without.kenneld, 0.01/bench.Part(tb, consoleTime).Seconds()) // at least one step of the clock that counts it
	t.databaseWith, t.databaseWithout = with.postgres, without.postgres
	for _, s := range screens {
		t.pages, t.bytes, t.again = t.pages+int(s.pages.Load()), t.bytes+int(s.bytes.Load()), t.again+int(s.again.Load())
	}
	return t, nil
}

// awaitScreens asks ok whenever a page came, for at most limit, and returns its last answer.
func awaitScreens(ctx context.Context, fresh <-chan struct{}, limit time.Duration, ok func() error) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-fresh:
		case <-end.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// consoleUse is in cores.
type consoleUse struct{ kenneld, postgres float64 }

// consoleBusy lets d pass and returns what was used meanwhile.
func consoleBusy(ctx context.Context, h *house, kenneld int, d time.Duration) (consoleUse, error) {
	cloud, err := cloudPids(h)
	if err != nil {
		return consoleUse{}, err
	}
	postgres := slices.DeleteFunc(cloud, func(pid int) bool { return !strings.HasPrefix(comm(pid), "postgres") })
	used, err := busy(ctx, d, []int{kenneld}, postgres)
	if err != nil {
		return consoleUse{}, err
	}
	return consoleUse{used[0] / 1000, used[1] / 1000}, nil
}

// consoleSessions signs an operator in n times.
func consoleSessions(ctx context.Context, tb testing.TB, h *house, pool *pgxpool.Pool, n int) (sessions []account.Login, err error) {
	var me struct{ ID account.ID }
	if err := h.API(ctx, "GET", "/v1/me", nil, &me); err != nil {
		return nil, err
	}
	// Sessions as kenneld issues them to its own programs: what is measured has nothing to do with passwords.
	people := accounttest.New(tb, pool)
	for range n {
		l, err := people.IssueSession(ctx, me.ID, time.Hour)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, l)
	}
	return sessions, nil
}

// screen is a browser with a page of the fleet open. It does what the page's script does (cloud/web/console/assets/app.js): follow the stream
// of changes, fetch the page again at each word, and once more if a word came meanwhile.
type screen struct {
	base  string
	token string
	view  fleetView
	http  *http.Client
	fresh chan<- struct{}

	now                 atomic.Pointer[fleetPage]
	pages, bytes, again atomic.Int64
}

// reconnectAfter is the time that the stream tells browsers to wait.
const reconnectAfter = 2 * time.Second

func newScreen(base string, token string, v fleetView, fresh chan<- struct{}) *screen {
	return &screen{base: base, token: token, view: v, http: &http.Client{Transport: &http.Transport{}}, fresh: fresh}
}

// watch looks until ctx ends. What is wrong with a page ends it with an error.
func (s *screen) watch(ctx context.Context) error {
	defer s.http.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.fetch(ctx); err != nil {
		return ended(ctx, err)
	}
	live := s.now.Load().Live
	if live == "" {
		return fmt.Errorf("/things%s names no stream of changes", s.view.query)
	}
	words := make(chan struct{}, 1) // a word that came while a page is fetched asks for one more, however many they are
	errc := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // before the wait
	wg.Go(func() {
		for {
			if err := s.follow(ctx, live, words); err != nil {
				errc <- err
				return
			}
			if bench.Pass(ctx, reconnectAfter) != nil {
				return
			}
			s.again.Add(1)
		}
	})
	for {
		select {
		case <-words:
			if err := s.fetch(ctx); err != nil {
				return ended(ctx, err)
			}
		case err := <-errc:
			return ended(ctx, err)
		case <-ctx.Done():
			return nil
		}
	}
}

// ended is nil when ctx has ended: what fails then fails for that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// get asks for a page or a stream.
func (s *screen) get(ctx context.Context, path, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return resp, nil
}

// fetch gets the page and looks at it.
func (s *screen) fetch(ctx context.Context) error {
	resp, err := s.get(ctx, "/things"+s.view.query, "text/html")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	p, err := readFleetPage(body)
	if err == nil {
		err = s.view.check(p)
	}
	if err != nil {
		return err
	}
	s.now.Store(&p)
	s.pages.Add(1)
	s.bytes.Add(int64(p.Size))
	select {
	case s.fresh <- struct{}{}:
	default:
	}
	return nil
}

// follow reads one stream to its end.
func (s *screen) follow(ctx context.Context, live string, words chan<- struct{}) error {
	resp, err := s.get(ctx, live, "text/event-stream")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		if sc.Text() != "event: change" {
			continue
		}
		select {
		case words <- struct{}{}:
		default:
		}
	}
	return nil // a stream may end at any time
}

// flock is robots that come and go.
type flock struct {
	pool  *pgxpool.Pool
	store *registrypg.Store
	ids   []thing.ID
	next  atomic.Int64
}

// newFlock makes n robots known and has half of them online.
func newFlock(ctx context.Context, pool *pgxpool.Pool, n int) (*flock, error) {
	f := &flock{pool: pool, store: registrypg.New(pool, slog.New(slog.DiscardHandler))}
	for i := range n {
		id, err := thing.New(thing.Vector, fmt.Sprintf("%08x", flockFirst+i))
		if err != nil {
			return f, err
		}
		f.ids = append(f.ids, id)
	}
	if _, err := pool.Exec(ctx, `INSERT INTO registry_thing (thing) SELECT unnest($1::text[])`, f.names()); err != nil {
		return f, fmt.Errorf("make %d robots known: %w", n, err)
	}
	// All come and half of them stay: none is left that was never seen.
	if _, err := bench.Many(n, flockAtOnce, func(i int) error {
		stay := flockStay
		if i%2 == 0 {
			stay = flockHome
		}
		return f.come(ctx, f.ids[i], stay)
	}); err != nil {
		return f, err
	}
	_, err := pool.Exec(ctx, `ANALYZE registry_thing, registry_facet, registry_words, registry_presence`)
	return f, err
}

func (f *flock) names() []string {
	out := make([]string, len(f.ids))
	for i, id := range f.ids {
		out[i] = string(id)
	}
	return out
}

// come has a robot say that it is here, for so long: the registry's rule for leases allows no lease below five seconds, which would be no more
// than a longer wait.
func (f *flock) come(ctx context.Context, id thing.ID, stay time.Duration) error {
	const races = 10 // lost to kenneld, which ends leases
	for range races {
		l, rev, now, err := f.store.Lease(ctx, id)
		if err != nil {
			return err
		}
		m := flockStatus(id, cmp.Or(l.BootID, "bench"), l.ConnectSeq+1, now)
		next, changes, ok := l.Next(m, now)
		if !ok {
			return fmt.Errorf("%s: a status is no next message of %+v", id, l)
		}
		next.Until = now.Add(stay)
		if saved, err := f.store.SaveLease(ctx, id, rev, next, changes, &registry.StatusAt{Message: m}); err != nil || saved {
			return err
		}
	}
	return fmt.Errorf("%s: %d races lost", id, races)
}

// flockStatus is the status of an arriving robot: always the same, with every value that tables show.
func flockStatus(id thing.ID, boot string, connect uint64, now time.Time) status.Message {
	n := int(id.Serial()[7])
	return status.Message{State: status.Online, BootID: boot, ConnectSeq: connect, Seq: 1, Lease: envelope.Millis(registry.MaxLease), TS: now.UnixMilli(), UptimeMS: 60_000,
		Agent: "v1.0." + fmt.Sprint(n%3), OS: "2.0.0." + fmt.Sprint(6070+n%8),
		Body: &status.Body{Model: "vector", Firmware: "1.2", BatteryVolts: 3.7 + float64(n%5)/10, BatteryLevel: "nominal", TemperatureC: 31},
		Loop: &status.Loop{Steps: 100_000, LateP50: 40, LateP99: 90 + float64(n%7), StepP50: 12, StepP99: 30}}
}

// fly has robots come and go, so many of both a second, until enough is closed. It catches up when it is behind.
func (f *flock) fly(ctx context.Context, enough <-chan struct{}, perSecond int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	due := make(chan thing.ID, flockAtOnce)
	var wg sync.WaitGroup
	for range flockAtOnce {
		wg.Go(func() {
			for id := range due {
				if err := f.come(work, id, flockStay); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	start, asked := time.Now(), 0
	err := func() error {
		for {
			select {
			case <-tick.C:
			case <-enough:
				return nil
			case <-work.Done():
				return context.Cause(work)
			}
			for ; asked < int(time.Since(start).Seconds()*float64(perSecond)/2); asked++ { // who comes goes
				i := int(f.next.Add(1))*flockStride%(len(f.ids)/2)*2 + 1
				select {
				case due <- f.ids[i]:
				case <-enough: // also for one that is behind
					return nil
				case <-work.Done():
					return context.Cause(work)
				}
			}
		}
	}()
	close(due)
	wg.Wait()
	if err == nil {
		err = context.Cause(work) // of the last ones
	}
	return ended(ctx, err)
}

// changes counts comings and goings so far.
func (f *flock) changes(ctx context.Context) (n int, err error) {
	err = f.pool.QueryRow(ctx, `SELECT count(*) FROM registry_presence`).Scan(&n)
	return n, err
}

// rest waits until everybody who does not stay has gone.
func (f *flock) rest(ctx context.Context) error {
	for {
		var open int
		err := f.pool.QueryRow(ctx, `SELECT count(*) FROM registry_thing WHERE present AND lease_until <= clock_timestamp() + $1::interval`, flockStay).Scan(&open)
		if err != nil || open == 0 {
			return err
		}
		if err := bench.Pass(ctx, 20*time.Millisecond); err != nil { // between two processes the answer to a question is the event there is
			return err
		}
	}
}

// fleet reads every robot there is from the registry's own table, not from those that pages are made of.
func (f *flock) fleet(ctx context.Context) ([]fleetRow, error) {
	rows, err := f.pool.Query(ctx, `SELECT thing, present, coalesce(since, '0001-01-01 00:00:00Z') FROM registry_thing`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[fleetRow])
}
