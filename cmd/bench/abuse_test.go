package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"kennel/infra/bench"
	kennel "kennel/sdk/go"

	"golang.org/x/sys/unix"
)

// The budgets of a robot under abuse by strangers and by a program with a token of its own (issue 32, what must hold 4).
const (
	abuse       = "abuse"
	abuseTime   = time.Minute
	abuseMemory = 64.0 // MiB of agentd more
	abuseReads  = 5.0  // the rightful program's 99th of 100 readings may take so many times as long

	abuseSilent    = 500 // connections that say nothing
	abuseHello     = 250 // connections that begin with TLS and go no further
	abuseHead      = 250 // connections that never finish a request
	abuseBytes     = 100 << 20
	abuseFollowers = 20 // streams that are opened and not read; a client may have eight
)

// BenchmarkAbuseBesideCalm measures a robot under 1,000 connections that come to nothing, guesses of tokens at full speed, messages of 100 MB and streams that are
// not read: whether its loop is later than in calm, how long its rightful program waits, and what memory agentd takes.
func BenchmarkAbuseBesideCalm(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		m, err := measureAbuse(b.Context(), b, programs(b))
		all.add(m)
		return err
	})
	all.report(b)
}

// borne is how a robot did.
type borne struct {
	late  bench.Pair // us, 99 of 100; under abuse alone
	read  float64    // likewise
	grown float64    // MiB
}

func measureAbuse(ctx context.Context, tb testing.TB, bin string) ([]measured, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	calm, err := bearAbuse(ctx, tb, bin, false)
	if err != nil {
		return nil, err
	}
	hard, err := bearAbuse(ctx, tb, bin, true)
	if err != nil {
		return nil, err
	}
	return []measured{
		{bench.Line{Name: "abuse/loop", Unit: "us", Less: true, Bound: 1 / sdkLoop, Note: "lateness of 99 of 100 steps of the loop under abuse; reference: while the abuser is stopped"}, hard.late},
		{bench.Line{Name: "abuse/read", Unit: "us", Less: true, Bound: 1 / abuseReads, Note: "99 of 100 readings of the rightful program under abuse; reference: in calm"},
			bench.Pair{Value: hard.read, Reference: calm.read}},
		{bench.Line{Name: "abuse/memory", Unit: "MiB", Less: true, Bound: 1, Note: fmt.Sprintf("resident memory of agentd more under abuse, %.1f in calm; reference: the budget", calm.grown)},
			bench.Pair{Value: max(0.01, hard.grown), Reference: abuseMemory}},
	}, nil
}

// bearAbuse measures a fresh robot.
func bearAbuse(ctx context.Context, tb testing.TB, bin string, abused bool) (out borne, err error) {
	r, err := startPunctual(ctx, tb, bin)
	if err != nil {
		return out, err
	}
	defer r.stop()
	rightful, names, err := robotSlots(ctx, r.file)
	if err != nil {
		return out, err
	}
	defer rightful.Close()
	memory := func() float64 { return float64(bench.UsageOfAll(r.agentd.Pid()).RSS) / (1 << 20) }
	before := memory()
	var abusers programsBeside
	if abused {
		file := filepath.Join(filepath.Dir(r.dir), "stranger.json")
		if err := r.admit(ctx, bin, "stranger", file); err != nil {
			return out, err
		}
		p, err := startPart(0, abuse, file)
		if err != nil {
			return out, err
		}
		defer p.Stop()
		if _, err := p.Await(ctx, "begun"); err != nil {
			return out, err
		}
		abusers = append(abusers, p.Pid())
		var outside unix.CPUSet // as if the abuser had a machine of its own: it costs the robot only what serving it takes
		outside.Set(runtime.NumCPU() - 1)
		if err := pin(p.Pid(), &outside); err != nil {
			return out, err
		}
	}
	reading, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var took []float64
	var wrong error
	wg.Go(func() {
		for reading.Err() == nil && wrong == nil {
			began := time.Now()
			if _, err := rightful.Values(reading, names[0]); err != nil && reading.Err() == nil {
				wrong = fmt.Errorf("the rightful program: %w", err)
			}
			took = append(took, float64(time.Since(began).Microseconds()))
			out.grown = max(out.grown, memory()-before)
			_ = bench.Pass(reading, 5*time.Millisecond) // the loop looks at reading
		}
	})
	err = bench.Pass(ctx, bench.Part(tb, abuseTime))
	cancel()
	wg.Wait()
	if err == nil {
		err = wrong
	}
	if err != nil {
		return out, err
	}
	out.read = bench.Percentile(took, 99)
	for _, pid := range abusers {
		if err := keepOffLoop(pid); err != nil {
			return out, err
		}
	}
	if abused {
		out.late, err = lateInTurns(ctx, r, bench.Part(tb, abuseTime/2), abusers.run)
	}
	return out, err
}

// abuseRobot is everyone at the robot of a file who wishes it ill, until ctx ends.
func abuseRobot(ctx context.Context, file string, out io.Writer) error {
	at, conf, err := readPlace(file)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	often := func(n int, do func()) {
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					do()
				}
			})
		}
	}
	hold := func(say string, secure bool) func() {
		return func() {
			conn, err := net.Dial("tcp", at.Address)
			if err != nil {
				_ = bench.Pass(ctx, 10*time.Millisecond) // refused: again soon
				return
			}
			defer conn.Close()
			if secure {
				conn = tls.Client(conn, conf)
			}
			_, _ = conn.Write([]byte(say)) // the robot may have closed it
			_ = bench.Pass(ctx, 3*time.Second)
		}
	}
	often(abuseSilent, hold("", false))
	often(abuseHello, hold("\x16\x03\x01", false))
	often(abuseHead, hold("POST /v1/do HTTP/1.1\r\nHost: robot\r\nContent-Length: 9\r\n", true))
	sender := http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
	post := func(token string, body io.Reader) {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+at.Address+"/v1/do", body)
		if err != nil {
			return // the address was good enough to dial
		}
		q.Header.Set("Authorization", "Bearer "+token)
		if a, err := sender.Do(q); err == nil { // the robot may close the connection meanwhile
			a.Body.Close()
		}
	}
	n := 0
	often(1, func() { n++; post(fmt.Sprint("guess-", n), nil) })
	often(1, func() { post(at.Token, io.LimitReader(zeroes{}, abuseBytes)) })
	guest, names, err := robotSlots(ctx, file)
	if err != nil {
		return err
	}
	defer guest.Close()
	often(abuseFollowers, func() {
		_ = guest.Subscribe(ctx, sdkRate, func(kennel.Values) error {
			<-ctx.Done() // nothing more is read
			return ctx.Err()
		}, names...)
	})
	fmt.Fprintln(out, "begun")
	<-ctx.Done()
	return nil
}

// zeroes is a body without an end.
type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte{'0'}, len(b))), nil }
