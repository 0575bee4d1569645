package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/kit/kitmqtt"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Robots that write at once, and their writes in a turn.
const (
	documentRobots = 8
	documentWrites = 8000
)

var documentText = jdocs.Default(jdocs.RobotLifetimeStats).JSON

// BenchmarkDocumentCPUBesideMessage measures the processor time that kenneld, its broker and its Postgres take for a robot's write of its
// statistics over MQTT, beside a bare message from one client to another (issue 15, "what must hold" 4).
func BenchmarkDocumentCPUBesideMessage(tb *testing.B) {
	ctx := tb.Context()
	h, err := startHouse(ctx, programs(tb), "-robots", "0")
	if err != nil {
		tb.Fatal(err)
	}
	defer h.Stop()
	is, err := openIssuer(h.CA())
	if err != nil {
		tb.Fatal(err)
	}
	writers := make([]func() error, documentRobots)
	for i := range writers {
		write, stop, err := newWriter(ctx, h, is, i)
		if err != nil {
			tb.Fatal(err)
		}
		defer stop()
		for range 20 { // statements are prepared
			if err := write(); err != nil {
				tb.Fatal(err)
			}
		}
		writers[i] = write
	}
	post, err := newPostOf(ctx, h, is, documentRobots)
	if err != nil {
		tb.Fatal(err)
	}
	defer post.stop()
	pid, err := h.Pid("kenneld")
	if err != nil {
		tb.Fatal(err)
	}
	n := bench.Part(tb, documentWrites)
	// micros returns the processor time of one call, less what the house uses by itself.
	micros := func(callers int, call func(caller int) error) (float64, error) {
		before, start := bench.UsageOfAll(bench.Family(pid)...), time.Now()
		if err := bench.Pass(ctx, 3*time.Second); err != nil {
			return 0, err
		}
		middle, half := bench.UsageOfAll(bench.Family(pid)...), time.Now()
		each := n / callers
		if _, err := bench.Many(callers, callers, func(i int) error {
			for range each {
				if err := call(i); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
		took, used := time.Since(half), bench.UsageOfAll(bench.Family(pid)...).CPU-middle.CPU
		idle := float64(middle.CPU-before.CPU) / float64(half.Sub(start))
		return (float64(used) - idle*float64(took)) / float64(each*callers) / 1e3, nil
	}
	var many, one []bench.Pair
	bench.Turns(tb, func() error {
		value, err := micros(len(writers), func(i int) error { return writers[i]() })
		if err != nil {
			return err
		}
		alone, err := micros(1, func(int) error { return writers[0]() })
		if err != nil {
			return err
		}
		reference, err := micros(1, func(int) error { return post.trip(ctx) })
		many = append(many, bench.Pair{Value: value, Reference: reference})
		one = append(one, bench.Pair{Value: alone, Reference: reference})
		return err
	})
	for name, pairs := range map[string][]bench.Pair{fmt.Sprintf("%d robots at once", documentRobots): many, "one robot": one} {
		line := bench.Line{Name: "documents/cpu", Unit: "us/write", Less: true,
			Note: fmt.Sprintf("processor time of kenneld, broker and Postgres for a write of %d bytes over MQTT, %d by %s; reference: a message of 512 bytes from client to client", len(documentText), n, name)}
		if name == "one robot" {
			line.Name = "documents/cpu-alone"
		}
		bench.Report(tb, line, pairs)
	}
}

// newWriter returns what writes the statistics of the i-th thing, as its agent does.
func newWriter(ctx context.Context, h *house, is issuer, i int) (write func() error, stop func(), err error) {
	robot, err := is.thing(i)
	if err != nil {
		return nil, nil, err
	}
	var link *session
	ask := kitmqtt.NewClient(robot.id, func(ctx context.Context, topic string, payload []byte) error {
		return link.Publish(ctx, topic, 0, false, payload)
	})
	link, err = connect(ctx, h.URL("mqtt"), string(robot.id), robot, func(topic string, payload []byte) {
		_ = ask.Deliver(topic, payload) // what it does not know is none of the answers awaited
	}, topics.ThingFilters(robot.id)...)
	if err != nil {
		return nil, nil, err
	}
	ask.Connected()
	docs, version := jdocswire.NewClient(ask), uint64(0)
	return func() error {
		res, err := docs.Write(ctx, jdocs.RobotLifetimeStats, jdocs.Doc{Version: version, FmtVersion: 1, JSON: documentText})
		if err == nil && res.Status != jdocs.Accepted {
			err = fmt.Errorf("%v at version %d", res.Status, version)
		}
		version = res.Latest
		return err
	}, link.stop, nil
}
