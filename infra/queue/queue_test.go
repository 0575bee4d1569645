package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/infra/queue"
	"kennel/infra/queue/queuetest"
	"kennel/infra/testwait"
)

const topic = "kennel/vic:00e20100/up/das"

// run runs a source until the test ends, or stop is called.
func run(t *testing.T, cfg queue.Config, take func(string, []byte) bool) (s *queue.SQS, stop func()) {
	t.Helper()
	s, err := queue.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, take) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// drained waits until the queue is empty.
func drained(t *testing.T, q *queuetest.Server) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		changed := q.Changed()
		left, _ := q.Left()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d messages are left", left)
		}
	}
}

func put(t *testing.T, q *queuetest.Server, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		b, err := queue.Encode(topic, []byte(p))
		if err != nil {
			t.Fatal(err)
		}
		q.Put(string(b))
	}
}

// TestTakesAll: every message is handed on, what is not taken comes again, and an overloaded queue is asked again.
func TestTakesAll(t *testing.T) {
	q := queuetest.Start(t)
	q.Fail(12) // all attempts of four receivers
	var mu sync.Mutex
	got := map[string]int{}
	s, _ := run(t, q.Config, func(where string, payload []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if where != topic {
			t.Errorf("topic %q", where)
		}
		got[string(payload)]++
		return strings.HasPrefix(string(payload), "easy") || got[string(payload)] > 2
	})
	for i := range 55 {
		put(t, q, fmt.Sprintf("easy %d", i))
	}
	large := "easy" + strings.Repeat("\xff", topics.MaxPayload-4)
	put(t, q, "hard", large, "")
	drained(t, q)
	mu.Lock()
	defer mu.Unlock()
	for i := range 55 {
		if n := got[fmt.Sprintf("easy %d", i)]; n != 1 {
			t.Errorf("message %d came %d times", i, n)
		}
	}
	if got["hard"] != 3 || got[large] != 1 || len(got) != 58 {
		t.Errorf("hard %d times, large %d times, %d different", got["hard"], got[large], len(got))
	}
	if st := s.Stats(); st.Taken != 58 || st.NotTaken != 4 || st.Unreadable != 0 || st.Dead != 0 || st.Failures == 0 {
		t.Errorf("%+v", st)
	}
}

// TestLag: the queue's own count of messages that no process was given. The four receivers hold at most ten each.
func TestLag(t *testing.T) {
	q := queuetest.Start(t)
	for i := range 65 {
		put(t, q, fmt.Sprint(i))
	}
	held := make(chan struct{})
	s, _ := run(t, q.Config, func(string, []byte) bool { <-held; return true })
	testwait.Until(t, testwait.Long, "a lag", func() error {
		if n, age, ok := s.Lag(); !ok || n < 25 || n > 65 || age < 0 {
			return fmt.Errorf("%d messages, %v old, %v", n, age, ok)
		}
		return nil
	})
	close(held)
	drained(t, q)
}

// TestPoison: a message that can never be taken is dropped after some attempts, is counted, and delays no other.
func TestPoison(t *testing.T) {
	q := queuetest.Start(t)
	cfg := q.Config
	cfg.MaxReceives, cfg.Visibility = 3, 10*time.Second
	s, _ := run(t, cfg, func(_ string, payload []byte) bool { return string(payload) == "good" })
	poison := []string{"", "{", "[]", `{"topic":"x"} {}`, `{"topic":"","payload":""}`, `{"topic":"x","payload":"!"}`, `{"topic":"x","other":1}`,
		`{"topic":"x","payload":"` + strings.Repeat("AAAA", topics.MaxPayload/3+2) + `"}`}
	q.Put(poison...)
	put(t, q, "good", "nobody's")
	drained(t, q)
	st := s.Stats()
	if st.Dead != int64(len(poison)+1) || st.Taken != 1 || st.Unreadable != 3*int64(len(poison)) || st.NotTaken != 3 {
		t.Errorf("%+v", st)
	}
}

// TestStop: a source that stops leaves nothing deleted that was not taken, and deletes what was.
func TestStop(t *testing.T) {
	q := queuetest.Start(t)
	cfg := q.Config
	cfg.Receivers = 1
	taken := make(chan bool)
	n := 0
	_, stop := run(t, cfg, func(string, []byte) bool {
		n++
		if n == 1 {
			close(taken)
		}
		return n <= 2
	})
	put(t, q, "a", "b", "c", "d")
	<-taken
	for {
		changed := q.Changed()
		if _, deleted := q.Left(); deleted > 0 {
			break
		}
		<-changed
	}
	stop()
	if left, deleted := q.Left(); left+deleted != 4 || deleted > 2 {
		t.Errorf("%d left, %d deleted", left, deleted)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	good := queue.Config{URL: "https://sqs.eu-central-1.amazonaws.com/1/q"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*queue.Config){
		"uplink.sqs.url":          func(c *queue.Config) { c.URL = "sqs" },
		"ACCOUNT/NAME":            func(c *queue.Config) { c.URL = "https://host" },
		"uplink.sqs.receivers":    func(c *queue.Config) { c.Receivers = 1000 },
		"uplink.sqs.visibility":   func(c *queue.Config) { c.Visibility = 1500 * time.Millisecond },
		"uplink.sqs.max_receives": func(c *queue.Config) { c.MaxReceives = -1 },
		"both or neither":         func(c *queue.Config) { c.AWS = awsconfig.Config{AccessKeyFile: "x"} },
		"uplink.sqs.aws.endpoint": func(c *queue.Config) { c.AWS.Endpoint = "host" },
	} {
		c := good
		change(&c)
		if _, err := queue.Open(t.Context(), c, nil); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	missing := good
	missing.AWS.AccessKeyFile, missing.AWS.SecretKeyFile = "/no/such/file", "/no/such/file"
	if _, err := queue.Open(t.Context(), missing, nil); err == nil || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("%v", err)
	}
}
