package commandapi

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kennel/cloud/bridge"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	// Each check takes a second of real time; make soak asks for more.
	checks := "6"
	if os.Getenv("KENNEL_SOAK") != "" {
		checks = "150"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": "3", "rapid.nofailfile": "true", "rapid.shrinktime": "1s"} {
		if !set[name] {
			_ = flag.Set(name, value) // the flag exists
		}
	}
	pgtest.Main(m)
}

// process is one kenneld as far as commands go: a bridge with the requests, and a sender.
type process struct {
	stop func()
}

func startProcess(t testing.TB, br *mqtttest.Broker, svc *command.Service, store *commandpg.Store) *process {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b, err := bridge.New(bridge.Config{MQTT: mqtt.Config{URL: br.URL, TLS: br.Cloud(t), Log: log, MinBackoff: 10 * time.Millisecond}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	b.Handle(bridge.Handlers{Req: Handlers(svc)})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(ctx) }) // nil by contract
	wg.Go(func() {
		if err := command.NewSender(store, b.Send, b.Connected, log).Run(ctx); err != nil {
			t.Errorf("sender: %v", err)
		}
	})
	return &process{stop: sync.OnceFunc(func() { cancel(); wg.Wait() })}
}

// robot is the other end, written from the contract alone: it executes an id once, remembers results, and tells them until it is answered.
// Its memory survives its connections.
type robot struct {
	id   thing.ID
	dial func() (*mqtt.Client, *kitmqtt.Client, error)
	wake chan struct{} // one slot: there is something to tell
	off  func()        // nil while offline

	mu     sync.Mutex
	deaf   int // so many messages from now on are lost
	begun  int64
	runs   map[string]int
	result map[string]commandwire.Result
	order  []string
	answer map[string]map[string]int // states the cloud ever answered, by command
	told   map[string]bool
}

func newRobot(t testing.TB, br *mqtttest.Broker, id thing.ID) *robot {
	r := &robot{id: id, runs: map[string]int{}, result: map[string]commandwire.Result{}, answer: map[string]map[string]int{}, told: map[string]bool{},
		wake: make(chan struct{}, 1)}
	tls := br.Thing(t, id)
	r.dial = func() (*mqtt.Client, *kitmqtt.Client, error) {
		var client *mqtt.Client
		ask := kitmqtt.NewClient(id, func(ctx context.Context, topic string, payload []byte) error {
			return client.Publish(ctx, topic, 1, false, payload)
		})
		var err error
		client, err = mqtt.New(mqtt.Config{
			URL: br.URL, ClientID: string(id), TLS: tls, Log: slog.New(slog.DiscardHandler), MinBackoff: 10 * time.Millisecond,
			OnConnect: func(ctx context.Context, c *mqtt.Client) error {
				if err := c.Subscribe(ctx, 1, topics.ThingFilters(id)...); err != nil {
					return err
				}
				ask.Connected()
				return nil
			},
			OnMessage: func(topic string, payload []byte, ack func()) {
				defer ack()
				if r.lost() {
					return
				}
				if tp, err := topics.Parse(topic); err == nil && tp.Class == topics.Res {
					_ = ask.Deliver(topic, payload) // a late answer is no matter
				} else if c, err := commandwire.ParseCommand(payload); err == nil {
					r.take(c)
				}
			},
		})
		return client, ask, err
	}
	return r
}

func (r *robot) lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf = max(r.deaf-1, -1)
	return r.deaf >= 0
}

func (r *robot) take(c commandwire.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.result[c.ID]; seen {
		r.told[c.ID] = false // told again, as a robot may
	} else {
		res := commandwire.Result{ID: c.ID, Status: commandwire.Done, Finished: int64(len(r.order))}
		if c.ExpiresInMS == 0 || c.Overtaken(r.begun) {
			res.Status = commandwire.Expired
		} else {
			r.begun = max(r.begun, c.GivenUS)
			r.runs[c.ID]++
		}
		r.result[c.ID] = res
		r.order = append(r.order, c.ID)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// online connects until off is called.
func (r *robot) online(t testing.TB) {
	if r.off != nil {
		return
	}
	client, ask, err := r.dial()
	if err != nil {
		t.Fatal(err)
	}
	r.contradict()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = client.Run(ctx) }) // nil by contract
	wg.Go(func() { r.pull(ctx, ask) })
	wg.Go(func() { r.tell(t, ctx, ask) })
	r.off = func() { cancel(); wg.Wait(); r.off = nil }
}

// contradict tells another result of the latest command that the cloud has answered, as a robot with a damaged disk might.
func (r *robot) contradict() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.order) - 1; i >= 0; i-- {
		if id := r.order[i]; r.told[id] {
			r.result[id] = commandwire.Result{ID: id, Status: commandwire.Failed, Detail: "on second thoughts", Finished: r.result[id].Finished}
			r.told[id] = false
			return
		}
	}
}

func (r *robot) pull(ctx context.Context, ask *kitmqtt.Client) {
	b, err := ask.Do(ctx, commandwire.Service, commandwire.PullMethod, nil)
	if err != nil {
		return // it went off
	}
	p, err := commandwire.ParsePull(b)
	if err != nil {
		return
	}
	for _, c := range p.Commands {
		r.take(c)
	}
}

func (r *robot) tell(t testing.TB, ctx context.Context, ask *kitmqtt.Client) {
	for ctx.Err() == nil {
		r.mu.Lock()
		var next *commandwire.Result
		for _, id := range r.order {
			if res := r.result[id]; !r.told[id] {
				next = &res
				break
			}
		}
		r.mu.Unlock()
		if next == nil {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		body, err := next.Encode()
		if err != nil {
			t.Error(err)
			return
		}
		reply, err := ask.Do(ctx, commandwire.Service, commandwire.ResultMethod, body)
		if err != nil {
			if ctx.Err() == nil && errs.KindOf(err) != errs.Unavailable {
				t.Errorf("result of %s: %v", next.ID, err)
				return
			}
			continue
		}
		a, err := commandwire.ParseAnswer(reply)
		if err != nil || a.ID != next.ID {
			t.Errorf("answer %s: %v", reply, err)
			return
		}
		r.mu.Lock()
		if r.answer[a.ID] == nil {
			r.answer[a.ID] = map[string]int{}
		}
		r.answer[a.ID][a.State]++
		r.told[a.ID] = true
		r.mu.Unlock()
	}
}

// TestEveryCommandEndsOnce is issue 3, "what must hold" 2: two processes on one outbox and one broker, killed and started in any order, robots
// that go offline and come back before and after the expiry, lost messages, duplicates: each command ends with exactly one result or expiry,
// each robot got its commands in their order and ran none twice.
func TestEveryCommandEndsOnce(t *testing.T) {
	br := mqtttest.Start(t)
	rapid.Check(t, func(rt *rapid.T) { chaos(t, rt, br, 3) })
}

func chaos(t *testing.T, rt *rapid.T, br *mqtttest.Broker, fleet int) {
	pool := pgtest.New(t)
	defer pool.Close() // before the test's end: there are as many rounds as the server has connections
	store := commandpg.New(pool, commandpg.WithPace(100*time.Millisecond, 400*time.Millisecond))
	svc := command.New(store)
	var robots []*robot
	for range fleet {
		robots = append(robots, newRobot(t, br, thing.ID(fmt.Sprintf("vic:%08x", rand.Uint32()))))
	}
	processes := make([]*process, 2)
	defer func() {
		for _, p := range processes {
			if p != nil {
				p.stop()
			}
		}
		for _, r := range robots {
			if r.off != nil {
				r.off()
			}
		}
	}()
	given := map[thing.ID][]string{}
	short := 0
	send := func(ttl time.Duration) {
		r := robots[rapid.IntRange(0, fleet-1).Draw(rt, "robot")]
		d := command.Draft{Thing: r.id, Kind: commandwire.Intent, Args: json.RawMessage(`{"intent":"greeting"}`), TTL: ttl, By: "chaos", Key: fmt.Sprint(len(given[r.id]))}
		for range rapid.IntRange(1, 2).Draw(rt, "times") { // a caller that heard nothing asks again
			c, err := svc.Send(t.Context(), d)
			if err != nil {
				rt.Fatalf("send: %v", err)
			}
			if ids := given[r.id]; len(ids) == 0 || ids[len(ids)-1] != c.ID {
				given[r.id] = append(ids, c.ID)
			}
		}
	}
	for range rapid.IntRange(10, 40).Draw(rt, "steps") {
		switch rapid.SampledFrom([]string{"send", "send", "send", "short", "kill", "start", "start", "off", "on", "on", "deaf", "pause"}).Draw(rt, "step") {
		case "send":
			send(commandwire.MaxWait)
		case "short":
			short++
			send(command.MinTTL)
		case "kill":
			if i := rapid.IntRange(0, 1).Draw(rt, "process"); processes[i] != nil {
				processes[i].stop()
				processes[i] = nil
			}
		case "start":
			if i := rapid.IntRange(0, 1).Draw(rt, "process"); processes[i] == nil {
				processes[i] = startProcess(t, br, svc, store)
			}
		case "off":
			if r := robots[rapid.IntRange(0, fleet-1).Draw(rt, "robot")]; r.off != nil {
				r.off()
			}
		case "on":
			robots[rapid.IntRange(0, fleet-1).Draw(rt, "robot")].online(t)
		case "deaf":
			r := robots[rapid.IntRange(0, fleet-1).Draw(rt, "robot")]
			r.mu.Lock()
			r.deaf = rapid.IntRange(1, 3).Draw(rt, "lost")
			r.mu.Unlock()
		case "pause": // lets things happen between two steps; nothing to wait for in particular
			time.Sleep(time.Duration(rapid.IntRange(1, 60).Draw(rt, "ms")) * time.Millisecond)
		}
	}
	// Everybody is back. Half of the time only after the short ones have expired.
	if short > 0 && rapid.Bool().Draw(rt, "late") {
		time.Sleep(command.MinTTL)
	}
	for i := range processes {
		if processes[i] == nil {
			processes[i] = startProcess(t, br, svc, store)
		}
	}
	for _, r := range robots {
		r.online(t)
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, r := range robots {
		for _, id := range given[r.id] {
			for {
				if _, err := store.Expire(t.Context(), 200*time.Millisecond); err != nil { // what the periodic job does, with less grace
					rt.Fatal(err)
				}
				c, err := svc.Command(t.Context(), r.id, id)
				if err != nil {
					rt.Fatal(err)
				}
				if c.State.Closed() {
					break
				}
				if time.Now().After(deadline) {
					rt.Fatalf("%s of %s never ended: %+v", id, r.id, c)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	for _, r := range robots {
		r.off() // nothing changes any more
		check(rt, svc, r, given[r.id])
	}
}

func check(rt *rapid.T, svc *command.Service, r *robot, given []string) {
	all, err := svc.Commands(context.Background(), r.id, false, command.MaxLimit)
	if err != nil {
		rt.Fatal(err)
	}
	if len(all) != len(given) {
		rt.Errorf("%s: %d commands in the outbox, %d were given", r.id, len(all), len(given))
	}
	place := map[string]int{}
	for i, id := range given {
		place[id] = i
	}
	for _, c := range all {
		ran, answers := r.runs[c.ID], r.answer[c.ID]
		switch {
		case ran > 1:
			rt.Errorf("%s ran %d times", c.ID, ran)
		case c.State == command.Done && (ran != 1 || c.Result == nil || c.Result.FinishedMS != r.result[c.ID].Finished):
			rt.Errorf("%s is done, ran %d times, result %+v, robot says %+v", c.ID, ran, c.Result, r.result[c.ID])
		case c.State == command.Failed:
			rt.Errorf("%s failed: %+v; a second result counted", c.ID, c.Result)
		case c.State == command.Expired && c.Result != nil && c.Result.Status != commandwire.Expired:
			rt.Errorf("%s expired with result %+v", c.ID, c.Result)
		case len(answers) > 1 || len(answers) == 1 && answers[string(c.State)] == 0:
			rt.Errorf("%s is %s, but the robot was answered %v", c.ID, c.State, answers)
		}
	}
	last := -1
	for _, id := range r.order {
		if r.runs[id] == 0 {
			continue
		}
		if place[id] < last {
			rt.Errorf("%s: command %d ran after command %d", r.id, place[id], last)
		}
		last = max(last, place[id])
	}
}
