package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"kennel/edge/agent/docs"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/topics"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// message is a robot's request as the broker holds it.
type message struct {
	n       int
	from    *robot
	what    string
	topic   string
	payload []byte
	client  *work // waits for the answer; nil: no longer
	serving *work
	topicID string // of the answer
	answer  []byte
}

// robot is one robot with the agent that runs on it now.
type robot struct {
	w        *world
	name     string
	id       thing.ID
	dir      string
	root     *os.Root
	disk     *disk
	link     *link
	agent    *docs.Agent
	op       *work // an exchange under way
	err      error
	online   bool
	versions map[string]uint64
}

// disk is the robot's storage until it dies: from then on nothing is written.
type disk struct {
	docs.Files
	root *os.Root
	fuse int // it dies at this step, two for each write; 0: not
	dead bool
}

var errDead = errors.New("the robot is dead")

func (d *disk) burns() bool {
	if d.fuse > 0 {
		d.fuse--
		d.dead = d.dead || d.fuse == 0
	}
	return d.dead
}

// Write dies before the write, leaving the half-written file that a kill leaves, or after it.
func (d *disk) Write(name string, data []byte) error {
	if d.dead {
		return errDead
	}
	if d.burns() {
		return errors.Join(errDead, d.root.WriteFile(name+".1.1.kennel-tmp", data[:len(data)/2], 0o644))
	}
	if err := d.Files.Write(name, data); err != nil {
		return err
	}
	if d.burns() {
		return errDead
	}
	return nil
}

// link carries the requests of one life of a robot.
type link struct {
	r      *robot
	client *kitmqtt.Client
	giveUp context.CancelFunc
	dead   bool
}

func (l *link) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	ctx, l.giveUp = context.WithCancel(ctx)
	defer l.giveUp()
	return l.client.Do(ctx, service, method, body)
}

func (l *link) publish(ctx context.Context, topic string, payload []byte) error {
	r := l.r
	if l.dead || !r.online {
		l.giveUp()
		return errors.New("not connected")
	}
	w := r.w
	w.sent++
	_, what, _ := strings.Cut(topic, "/req/")
	m := &message{n: w.sent, from: r, what: what, topic: topic, payload: slices.Clone(payload), client: opOf(ctx)}
	w.messages = append(w.messages, m)
	if err := m.client.pass(fmt.Sprintf("%s waits for the answer to message %d (%s)", r.name, m.n, what)); err != nil {
		m.client = nil
		l.giveUp()
		return err
	}
	m.client = nil
	return l.client.Deliver(topics.ResTopic(r.id, m.topicID), m.answer)
}

const (
	modelSettings = robotfs.Persistent + "/jdocs/vic.RobotSettings.json"
	modelStats    = robotfs.Persistent + "/jdocs/vic.RobotLifetimeStats.json"
)

func (r *robot) settings() jdocs.Key { return jdocs.Key{Thing: r.id, Name: jdocs.RobotSettings} }
func (r *robot) stats() jdocs.Key    { return jdocs.Key{Thing: r.id, Name: jdocs.RobotLifetimeStats} }

// die ends the agent where it is. Its messages stay in the broker.
func (r *robot) die() {
	if r.disk == nil {
		return
	}
	r.disk.dead, r.link.dead = true, true
	for r.op != nil && !r.op.over {
		r.op.verdict <- errDead
		r.op.settle()
	}
	r.op = nil
}

// boot starts an agent from what is on disk.
func (r *robot) boot() {
	r.die()
	l := &link{r: r}
	l.client = kitmqtt.NewClient(r.id, l.publish)
	r.link, r.disk = l, &disk{Files: docs.RootFiles(r.root), root: r.root}
	cfg := docs.Config{Settings: jdocs.RobotSettings, Root: r.root, Remote: r.w.house.plant.remote(jdocswire.NewClient(l)), Log: silent,
		OnPushed: func(name jdocs.Name, v uint64) { r.w.told(jdocs.Key{Thing: r.id, Name: name}, v) }}
	a, err := docs.NewOn(cfg, r.disk)
	if err != nil {
		r.w.fatalf("%s does not start: %v", r.name, err)
	}
	if m := r.w.house.plant.merge; m != nil {
		a.SetMerge(m)
	}
	r.agent = a
}

// wipe boots the robot with an empty disk.
func (r *robot) wipe() {
	r.die()
	if r.root != nil {
		_ = r.root.Close()
		_ = os.RemoveAll(r.dir)
	}
	var err error
	if r.dir, err = os.MkdirTemp(memory(), "docmodel-"); err == nil {
		r.root, err = os.OpenRoot(r.dir)
	}
	if err != nil {
		r.w.fatalf("%v", err)
	}
	r.versions = nil
	r.boot()
}

// memory returns a folder in memory, where syncing costs nothing; "" where there is none. A kill loses nothing that was written.
func memory() string {
	const dir = "/dev/shm"
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return ""
	}
	return dir
}

// look boots the robot if its disk died on the way.
func (r *robot) look() {
	if r.op != nil && r.op.over {
		r.op = nil
	}
	if r.disk.dead {
		r.w.say("%s died while it wrote a file, and starts again", r.name)
		r.boot()
	}
}

func (r *robot) sync(what string, f func(context.Context) error) {
	r.w.say("%s %s", r.name, what)
	r.op = newOp(r.name + " " + what)
	r.op.run(func(ctx context.Context) { r.err = f(ctx) })
	r.look()
}

// waiting returns the message whose answer the robot waits for.
func (r *robot) waiting() *message {
	for _, m := range r.w.messages {
		if r.op != nil && m.client == r.op {
			return m
		}
	}
	return nil
}

// undisturbed takes the robot's exchange to its end.
func (r *robot) undisturbed() {
	for r.op != nil {
		m := r.waiting()
		k := r.w.anyKenneld()
		if k == nil {
			r.giveUp()
			continue
		}
		r.w.answer(m, k)
		r.w.deliver(m)
	}
}

// giveUp ends the wait for an answer; the message stays in the broker.
func (r *robot) giveUp() {
	for r.op != nil {
		r.op.verdict <- errors.New("no answer")
		r.op.settle()
		r.look()
		if r.online {
			return // the exchange may continue with the next document
		}
	}
}
