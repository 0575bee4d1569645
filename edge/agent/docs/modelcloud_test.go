package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"kennel/infra/api/hints"
	"kennel/infra/api/jdocspb"
	"kennel/infra/auth"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocsapi"
	"kennel/jdocs/jdocspg"
	"kennel/jdocs/people"

	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	errDied = errors.New("kenneld died")
	silent  = slog.New(slog.DiscardHandler)
)

// work is under way: a robot's exchange, or a request inside a kenneld. It runs in its own goroutine, but only while the world
// waits for it: it stops at every gate (pass) until the world resumes it. So the order of all steps is the world's choice alone.
type work struct {
	what    string
	at      chan string
	verdict chan error
	done    chan struct{}

	where   string // the gate where it waits
	over    bool
	k       *kenneld // where it runs; nil: on a robot
	gen     int      // of the kenneld
	cut     bool     // the client no longer waits for the answer
	settled func()   // called once it is over, by the world
}

type opKey struct{}

func opOf(ctx context.Context) *work {
	o, _ := ctx.Value(opKey{}).(*work)
	return o
}

// pass stops the work until the world resumes it; an error ends what it was about to do.
func (o *work) pass(where string) error {
	if o == nil {
		return nil
	}
	o.at <- where
	return <-o.verdict
}

// answered reports whether the client hears what the work came to.
func (o *work) answered() bool { return !o.cut && o.k.alive && o.k.gen == o.gen }

// kenneld is one instance: its rules, transports and listener, over a pool of its own to the one Postgres.
type kenneld struct {
	name  string
	pool  *pgxpool.Pool
	house *house

	alive  bool
	gen    int // counts its starts
	docs   jdocs.Service
	jdocs  jdocspb.JdocsClient // as an original robot reaches it
	mqtt   *kitmqtt.Server
	people http.Handler
	hinter *jdocsapi.Hinter
	stop   func()

	mu      sync.Mutex
	heard   map[jdocs.Key]uint64 // by the listener, since the start
	hearing chan struct{}        // closed and replaced when it hears
}

// house outlives a history: Postgres and the two kenneld.
type house struct {
	t       testing.TB
	kenneld [2]*kenneld
	now     *world         // the history that is played
	plain   *jdocspg.Store // beside the two, to look at what is stored
	plant   plant
	calls   sync.Map // string to *work: calls over gRPC, which carries no context
	serial  uint64
}

func newHouse(t testing.TB, open func() *pgxpool.Pool, p plant) *house {
	h := &house{t: t, plant: p, plain: jdocspg.New(open())}
	for i := range h.kenneld {
		h.kenneld[i] = &kenneld{name: fmt.Sprintf("kenneld %d", i+1), pool: open(), house: h}
		h.kenneld[i].start()
	}
	t.Cleanup(func() {
		for _, k := range h.kenneld {
			k.die(func() {})
		}
	})
	return h
}

// start returns when the instance answers and its listener hears.
func (k *kenneld) start() {
	if k.alive {
		return
	}
	k.gen++
	k.alive, k.heard, k.hearing = true, map[jdocs.Key]uint64{}, make(chan struct{})
	store := k.house.plant.store(jdocspg.New(k.pool))
	k.docs = k.house.plant.rules(gated{store, k, k.gen})
	robots := jdocs.Robots{Docs: k.docs, OwnerOf: k.house.ownerOf}
	k.mqtt = kitmqtt.NewServer(jdocsapi.Handlers(robots, silent), silent)
	mux := http.NewServeMux()
	jdocsapi.Operations(&people.Documents{Docs: k.docs, Owns: k.house.owns}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	k.people = mux
	hangUp := k.published(robots)
	k.hinter = jdocsapi.NewHinter(jdocs.New(store), k.house.hint, silent)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	listener := &jdocspg.Listener{Pool: k.pool, Log: silent, Changed: k.changed}
	go func() { done <- listener.Run(ctx) }()
	k.stop = func() {
		hangUp()
		cancel()
		if err := <-done; err != nil {
			k.house.t.Errorf("listener of %s: %v", k.name, err)
		}
	}
	k.house.serial++
	sentinel := jdocs.Key{Thing: thing.MustParse("vic:ffffffff"), Name: jdocs.Name(fmt.Sprintf("start.%d", k.house.serial))}
	v, _, err := jdocspg.New(k.pool).Put(ctx, sentinel, jdocs.Doc{FmtVersion: 1, JSON: "{}"}, 1, "test")
	if err != nil {
		k.house.t.Fatal(err)
	}
	if err := k.await(sentinel, v); err != nil {
		k.house.t.Fatal(err)
	}
}

// die ends the instance; meanwhile, what runs in it ends.
func (k *kenneld) die(meanwhile func()) {
	if !k.alive {
		return
	}
	k.alive = false
	k.gen++
	meanwhile()
	k.stop()
}

// published serves original robots over gRPC in this process.
func (k *kenneld) published(robots jdocs.Robots) (stop func()) {
	server, l := grpc.NewServer(), bufconn.Listen(1<<20)
	jdocsapi.NewPublished(robots, nil, tokens{}, silent).Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:kenneld", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		k.house.t.Fatal(err)
	}
	k.jdocs = jdocspb.NewJdocsClient(conn)
	return func() {
		_ = conn.Close() // in memory
		server.Stop()
		<-served
	}
}

// tokens takes a robot's name for its access token.
type tokens struct{ jdocsapi.Callers }

func (tokens) Robot(_ context.Context, c jdocsapi.Credentials) (thing.ID, error) {
	return thing.Parse(string(c.AccessToken))
}

// call is the context of an original robot's call, which also tells the other end of the connection of which work it is.
func (h *house) call(ctx context.Context, id thing.ID) context.Context {
	o := opOf(ctx)
	name := fmt.Sprintf("%p", o)
	h.calls.Store(name, o)
	return metadata.AppendToOutgoingContext(ctx, "anki-access-token", string(id), "op", name)
}

func (k *kenneld) changed(_ context.Context, key jdocs.Key, version uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard[key] = max(k.heard[key], version)
	close(k.hearing)
	k.hearing = make(chan struct{})
}

// await waits until the listener has heard of that version or a later one.
func (k *kenneld) await(key jdocs.Key, version uint64) error {
	timeout := time.After(30 * time.Second)
	for {
		k.mu.Lock()
		have, more := k.heard[key], k.hearing
		k.mu.Unlock()
		if have >= version {
			return nil
		}
		select {
		case <-more:
		case <-timeout:
			return fmt.Errorf("the listener of %s never heard of version %d of %s", k.name, version, key)
		}
	}
}

func (h *house) owns(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
	w := h.now
	return time.Time{}, account == w.account && (id == w.robots[0].id || id == w.robots[1].id || id == w.original.id), nil
}

func (h *house) ownerOf(context.Context, thing.ID) (string, error) { return h.now.account, nil }

// hint is the bridge: what a Hinter publishes reaches the robot.
func (h *house) hint(_ context.Context, id thing.ID, _ string, payload []byte) {
	hint, err := hints.ParseJdocs(payload)
	if err != nil {
		h.t.Errorf("hint: %v", err)
		return
	}
	for _, r := range h.now.robots {
		if r.id == id {
			r.agent.Hint(hint.Docs)
		}
	}
}

// person sends one request of a person and returns the status and the document of the answer.
func (k *kenneld) person(ctx context.Context, c auth.Caller, method string, key jdocs.Key, what, body string) (int, jdocsapi.Doc, string) {
	r := httptest.NewRequestWithContext(auth.WithCaller(ctx, c), method, fmt.Sprintf("/v1/things/%s/jdocs/%s%s", key.Thing, key.Name, what),
		strings.NewReader(body))
	rec := httptest.NewRecorder()
	k.people.ServeHTTP(rec, r)
	var doc jdocsapi.Doc
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
			return 0, doc, err.Error()
		}
	}
	return rec.Code, doc, rec.Body.String()
}

// store is the storage that the rules need.
type store = jdocs.Store

// gated is the storage of one life of a kenneld: the world may let anything happen before each statement, the death of this kenneld too.
type gated struct {
	store
	k   *kenneld
	gen int
}

func (g gated) pass(ctx context.Context, what string, key jdocs.Key) error {
	o := opOf(ctx)
	if md, ok := metadata.FromIncomingContext(ctx); ok && o == nil {
		call, _ := g.k.house.calls.Load(strings.Join(md["op"], ""))
		o, _ = call.(*work)
	}
	if err := o.pass(fmt.Sprintf("%s is about to %s %s", g.k.name, what, key)); err != nil {
		return err
	}
	if g.k.gen != g.gen {
		return errDied
	}
	return nil
}

func (g gated) Get(ctx context.Context, key jdocs.Key) (jdocs.Revision, error) {
	if err := g.pass(ctx, "read", key); err != nil {
		return jdocs.Revision{}, err
	}
	return g.store.Get(ctx, key)
}

func (g gated) Put(ctx context.Context, key jdocs.Key, d jdocs.Doc, newest uint64, by string) (uint64, jdocs.Revision, error) {
	if err := g.pass(ctx, fmt.Sprintf("store %s over version %d of", brief(d.JSON), d.Version), key); err != nil {
		return 0, jdocs.Revision{}, err
	}
	return g.store.Put(ctx, key, d, newest, by)
}

func (g gated) Delete(ctx context.Context, key jdocs.Key, by string) (uint64, error) {
	if err := g.pass(ctx, "delete", key); err != nil {
		return 0, err
	}
	return g.store.Delete(ctx, key, by)
}

func (g gated) Revision(ctx context.Context, key jdocs.Key, version uint64) (jdocs.Revision, error) {
	if err := g.pass(ctx, fmt.Sprintf("look up version %d of", version), key); err != nil {
		return jdocs.Revision{}, err
	}
	return g.store.Revision(ctx, key, version)
}
