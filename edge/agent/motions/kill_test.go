package motions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/testexec"
)

// childVar names the folder of the robot whose motions a process of this test keeps.
const childVar = "KENNEL_MOTIONS_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		if err := keep(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asked and answered are a request of that process and its answer, a line of JSON each.
type (
	asked struct {
		Method string
		Body   json.RawMessage
	}
	answered struct {
		Body  json.RawMessage
		Error string
		Kind  errs.Kind
	}
)

// lines asks for one thing after another over its standard output, and gets the answers from its standard input.
type lines struct {
	mu  sync.Mutex
	in  chan []byte // closed at the end of the input
	out *json.Encoder
}

func (l *lines) Do(_ context.Context, _, method string, body []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.out.Encode(asked{method, body}); err != nil {
		return nil, err
	}
	line, ok := <-l.in
	if !ok {
		return nil, errCut
	}
	var a answered
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errs.New(a.Kind, "%s", a.Error)
	}
	return a.Body, nil
}

// read hands over the lines of the input until it ends, and then ends the process.
func (l *lines) read(end context.CancelFunc) {
	defer end()
	defer close(l.in)
	s := bufio.NewScanner(os.Stdin)
	for s.Buffer(nil, 4*motionwire.MaxFile); s.Scan(); {
		l.in <- bytes.Clone(s.Bytes())
	}
}

// keep is the other process: a keeper that runs as in agentd until its input ends.
func keep(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := host.New(host.Robot{Root: root, Dir: dir, Thing: "aibo:00e20100", Log: slog.New(slog.DiscardHandler), Now: time.Now})
	l := &lines{in: make(chan []byte), out: json.NewEncoder(os.Stdout)}
	go l.read(cancel)
	k := New(h, mind{}, l)
	if err := h.Add(k.Part()); err != nil {
		return err
	}
	h.Publish(host.MaySync{})
	return k.Run(ctx)
}

// moments are those at which the process is killed: before a request took effect, after that without an answer, with the answer just sent, and as soon as
// something changed on disk after it.
const (
	before = iota
	unanswered
	answeredNow
	writing
	moments
)

// sizes returns the files of a folder with their sizes.
func sizes(dir string) map[string]int64 {
	out := map[string]int64{}
	entries, _ := os.ReadDir(dir) // there is none before the first motion
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // it may be renamed just now
			out[e.Name()] = info.Size()
		}
	}
	return out
}

// change waits until the files of a folder are others than before, or the process makes its next request. It returns a channel that is closed when that request,
// or the end of the process, was read.
func change(dir string, was map[string]int64, requests *bufio.Scanner) <-chan struct{} {
	next := make(chan struct{})
	go func() { defer close(next); requests.Scan() }()
	for {
		select {
		case <-next:
			return next
		default:
		}
		if !maps.Equal(sizes(dir), was) {
			return next
		}
	}
}

// closed is a channel on which nothing is awaited.
var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// lifetime runs the process until its request number kill, at a moment of which it dies by SIGKILL, or until the cloud has all verdicts. It reports whether it was
// killed.
func lifetime(t *testing.T, c *cloud, dir string, kill, moment int, want int) (killed bool) {
	t.Helper()
	cmd := testexec.Command(t.Context(), t, []string{childVar + "=" + dir})
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	cmd.Stderr = t.Output()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	requests, next := bufio.NewScanner(out), closed
	requests.Buffer(nil, 4*motionwire.MaxFile)
	for n := 0; len(c.verdicts) < want && requests.Scan(); n++ {
		var a asked
		if err := json.Unmarshal(requests.Bytes(), &a); err != nil {
			t.Fatalf("%q: %v", requests.Text(), err)
		}
		if n == kill && moment == before {
			killed = true
			break
		}
		body, err := c.Do(t.Context(), motionwire.Service, a.Method, a.Body)
		answer := answered{Body: body}
		if err != nil {
			answer = answered{Error: err.Error(), Kind: errs.KindOf(err)}
		}
		if n == kill && moment == unanswered {
			killed = true
			break
		}
		line, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, mindlink.MotionsDir)
		was := sizes(own)
		if _, err := in.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if killed = n == kill; killed {
			if moment == writing && len(c.verdicts) < want { // after the last one nothing more comes
				next = change(own, was, requests)
			}
			break
		}
	}
	if killed {
		_ = cmd.Process.Kill()
		<-next
	} else {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out) // it may begin one more request
	}
	if err := cmd.Wait(); (err == nil) == killed {
		t.Fatalf("killed: %v, and it ended with %v", killed, err)
	}
	return killed
}

// TestKilled: wherever SIGKILL ends the process that keeps the motions, each file on disk is whole, and the next process brings the robot and the cloud in step.
func TestKilled(t *testing.T) {
	files := map[string]string{"hop": "good " + strings.Repeat("hop", 40_000), "bow": "good bow", "fly": "bad"}
	rnd := rand.New(rand.NewPCG(35, 9))
	died := 0
	for kill := 0; ; kill++ { // sync, body, and of each motion file and verdict
		any := false
		for moment := range moments {
			dir := t.TempDir()
			own := filepath.Join(dir, mindlink.MotionsDir)
			c := &cloud{files: files, verdicts: map[string]motionwire.Verdict{}}
			if rnd.IntN(2) == 0 { // an older form of one is there
				if err := errors.Join(os.MkdirAll(own, 0o755), os.WriteFile(filepath.Join(own, "bow"+mindlink.MotionsEnding), []byte("good old bow"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if !lifetime(t, c, dir, kill, moment, len(files)) {
				continue
			}
			any, died = true, died+1
			for name, text := range disk(t, own) {
				if !robotfs.Unfinished(name) && text != files[name] && text != "good old bow" {
					t.Errorf("request %d, moment %d: %s has %d bytes of %d", kill, moment, name, len(text), len(files[name]))
				}
			}
			if lifetime(t, c, dir, -1, 0, len(files)) {
				t.Fatal("the second one died")
			}
			want := maps.Clone(files)
			delete(want, "fly")
			if got := disk(t, own); !maps.Equal(got, want) || c.verdicts["fly"+motionwire.Sum([]byte("bad"))].Kept {
				t.Errorf("request %d, moment %d: it has %d motions, want %d", kill, moment, len(got), len(want))
			}
		}
		if !any {
			break
		}
	}
	if want := 8 * moments; died != want {
		t.Errorf("it was killed %d times, want %d", died, want)
	}
}
