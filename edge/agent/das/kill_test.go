package das

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/testexec"
)

// The test binary runs itself as a robot that is killed with SIGKILL at a given step on disk, and plays the cloud on the other end of its
// pipes. Environment: the root, where to die (step:count) and how many events to emit.
const (
	envRoot = "KENNEL_DAS_TEST_ROOT"
	envBoot = "KENNEL_DAS_TEST_BOOT"
	envDie  = "KENNEL_DAS_TEST_DIE"
	envFrom = "KENNEL_DAS_TEST_FROM"
	envOff  = "KENNEL_DAS_TEST_OFFLINE" // "true": no way to the cloud, so that storage fills up
)

func TestMain(m *testing.M) {
	if os.Getenv(envRoot) != "" {
		if err := robot(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// perLife is how many events one life of the robot emits.
const perLife = 40

// Frames from the robot: 'B' a batch, 'D' the number of an event that is durable, 'E' all emitted and sent. To the robot: an ack.
func writeFrame(w io.Writer, kind byte, body []byte) error {
	head := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(body)))...)
	_, err := w.Write(append(head, body...))
	return err
}

func readFrame(r io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(r, body)
	return head[0], body, err
}

// robot is the child: it emits, sends, and dies.
func robot() error {
	root, err := os.OpenRoot(os.Getenv(envRoot))
	if err != nil {
		return err
	}
	where, nth, _ := strings.Cut(os.Getenv(envDie), ":")
	left, _ := strconv.Atoi(nth) // 0: never
	die := func(step string) {
		torn := where == "torn" && step == "append"
		if step != where && !torn {
			return
		}
		if left--; left != 0 {
			return
		}
		if torn { // half of a write reached the file
			tear(root)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	from, err := strconv.Atoi(os.Getenv(envFrom))
	if err != nil {
		return err
	}
	m, err := New(Config{
		Root: root, Frugal: from/perLife%2 == 1, Thing: testThing, BootID: os.Getenv(envBoot), Uptime: func() time.Duration { return time.Second },
		Log:           slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		FlushInterval: time.Millisecond, SyncInterval: time.Millisecond, BatchEvents: 7, step: die,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	offline := os.Getenv(envOff) == "true"
	var mu sync.Mutex // frames are whole
	frame := func(kind byte, body []byte) error {
		mu.Lock()
		defer mu.Unlock()
		return writeFrame(os.Stdout, kind, body)
	}
	go func() {
		for {
			_, body, err := readFrame(os.Stdin)
			if err != nil {
				cancel()
				return
			}
			if a, err := ack.Parse(body); err == nil {
				m.HandleAck(a)
			}
		}
	}()
	ran := make(chan error, 1)
	go func() {
		ran <- m.Run(ctx, func(_ context.Context, _ string, payload []byte) error {
			if offline {
				return errors.New("no connection")
			}
			return frame('B', payload)
		})
	}()
	for i := from; i < from+perLife; i++ {
		e := events.Event{Name: "test.kill", S1: fmt.Sprint(i)}
		if i%10 == 9 {
			e.S2 = "poison"
		}
		if i%2 == 0 {
			if _, err := m.Emit(e); err != nil {
				return err
			}
			continue
		}
		if _, err := m.EmitDurable(ctx, e); err != nil {
			return err
		}
		if err := frame('D', []byte(e.S1)); err != nil {
			return err
		}
	}
	for !offline && m.Stats().Events > 0 {
		select {
		case <-ctx.Done():
			return errors.New("parent went away")
		case <-time.After(time.Millisecond): // the child's own pace; nothing tells of an empty spool
		}
	}
	cancel()
	if err := <-ran; err != nil {
		return err
	}
	return frame('E', nil)
}

func isNumber(s string) bool { _, err := strconv.Atoi(s); return err == nil }

// tear appends half a line to the newest segment.
func tear(root *os.Root) {
	d, err := root.Open("run/dasLogs")
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1) // an empty list tears nothing
	slices.Sort(names)
	for _, n := range slices.Backward(names) {
		if strings.HasSuffix(n, ".ndjson") {
			if f, err := root.OpenFile("run/dasLogs/"+n, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.WriteString(`{"source":"","ts":17000000`) // about to die
			}
			return
		}
	}
}

// memory is the cloud's knowledge of one robot across its restarts.
type memory struct {
	t       *testing.T
	stored  map[string]string // boot/seq -> s1, acknowledged
	seen    map[string]string // boot/seq -> s1, received in any way
	bad     map[string]string // refused
	durable map[string]bool   // s1 that EmitDurable returned for
	life    int
}

// live runs the robot once and reports whether it came to its end.
func (c *memory) live(dir, boot, dieAt string, offline bool) bool {
	c.t.Helper()
	cmd := testexec.Command(c.t.Context(), c.t, []string{"GORACE=atexit_sleep_ms=0", envRoot + "=" + dir, envBoot + "=" + boot, envDie + "=" + dieAt,
		fmt.Sprint(envFrom, "=", c.life*perLife), fmt.Sprint(envOff, "=", offline)})
	c.life++
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := false
	for r := bufio.NewReader(out); ; {
		kind, body, err := readFrame(r)
		if err != nil {
			break // the robot is dead or done
		}
		switch kind {
		case 'D':
			c.durable[string(body)] = true
		case 'E':
			ended = true
		case 'B':
			a, err := c.take(body).Encode()
			if err != nil {
				c.t.Fatal(err)
			}
			_ = writeFrame(in, 'A', a) // a dead robot does not hear
		}
	}
	err = cmd.Wait()
	if ended != (err == nil) || stderr.Len() > 0 {
		c.t.Fatalf("robot dying at %q: ended %v, %v\n%s", dieAt, ended, err, stderr.String())
	}
	return ended
}

func (c *memory) take(payload []byte) ack.Ack {
	b, err := events.DecodeBatch(payload)
	if err != nil {
		c.t.Fatalf("batch: %v", err)
	}
	a := ack.Ack{Batch: b.Batch, Status: ack.Stored}
	for _, e := range b.Events {
		key := fmt.Sprint(e.BootID, "/", e.Seq)
		if old, ok := c.seen[key]; ok && old != e.S1 {
			c.t.Errorf("%s was event %q and is now %q: a number was used twice", key, old, e.S1)
		}
		c.seen[key] = e.S1
		if e.S2 == "poison" {
			a.Status, a.Code, a.Bad = ack.Refused, "events", append(a.Bad, e.Seq)
			c.bad[key] = e.S1
		}
	}
	if a.Status == ack.Stored {
		for _, e := range b.Events {
			c.stored[fmt.Sprint(e.BootID, "/", e.Seq)] = e.S1
		}
	}
	return a
}

// Kill -9 at every kind of step, early and late, then let the robot live to its end, in the same boot and in a new one: what EmitDurable
// returned for is stored or in quarantine, once, and no number ever names two events (issue 2, "what must hold" 4).
func TestKill(t *testing.T) {
	config := `{"storage_quota": 8000, "file_threshold_size": 1200, "backup_quota": 10000000}`
	for _, step := range []string{
		"begun", "append", "torn", "appended", "sync", "synced", "copied", "moved", "published", "acked", "state", "stated", "remove", "removed", "isolate", "isolated",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			c := &memory{t: t, stored: map[string]string{}, seen: map[string]string{}, bad: map[string]string{}, durable: map[string]bool{}}
			root := testRoot(t)
			writeFile(t, root, ConfigFile, config)
			killed := 0
			for n := range 4 { // same boot twice, then another
				die := fmt.Sprint(step, ":", 1+2*n)
				if !c.live(root.Name(), fmt.Sprint("boot-", n/2), die, step == "copied" || step == "moved") {
					killed++
				}
			}
			if killed == 0 {
				t.Errorf("never died at %s", step)
			}
			for _, boot := range []string{"boot-1", "boot-2"} {
				if !c.live(root.Name(), boot, "", false) {
					t.Fatal("the last lives must end by themselves")
				}
			}
			values := map[string]string{}
			for _, m := range []map[string]string{c.stored, c.bad} {
				for key, s1 := range m {
					if other, ok := values[s1]; ok && other != key && isNumber(s1) {
						t.Errorf("event %s is there twice, as %s and %s", s1, other, key)
					}
					values[s1] = key
				}
			}
			for s1 := range c.durable {
				if _, ok := values[s1]; !ok {
					t.Errorf("event %s was durable and is lost", s1)
				}
			}
			for s1, key := range values {
				if n, err := strconv.Atoi(s1); err == nil && (n%10 == 9) != (c.bad[key] != "") {
					t.Errorf("event %s: poisoned %v, refused %v", s1, n%10 == 9, c.bad[key] != "")
				}
			}
			if len(c.bad) == 0 || len(c.stored) < perLife {
				t.Errorf("only %d stored, %d refused: the test does not reach what it tests", len(c.stored), len(c.bad))
			}
			m := newManager(t, root, "boot-3")
			if st := m.Stats(); st.Events != 0 || st.Dropped != 0 || st.Quarantined != uint64(len(c.bad)) {
				t.Errorf("the robot's own count: %+v; the cloud refused %d", st, len(c.bad))
			}
		})
	}
}
