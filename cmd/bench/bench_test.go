package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/bench"
	"kennel/infra/cli"
	"kennel/infra/proc"
)

// TestMain makes the test the program itself when a bench starts one of its parts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "part" {
		main()
	}
	os.Exit(m.Run())
}

// TestBench runs benches as people do, against programs that it builds: with a house, with a broker alone, with a part of its own.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	// Light: one of each kind; KENNEL_SOAK: all that need less than a minute.
	which, want := "logins|spine|rpc", []string{"logins", "spine/parse", "spine/append", "rpc/rate", "rpc/latency"}
	if os.Getenv("KENNEL_SOAK") != "" {
		which = "passwords|logins|tokens|certificates|consoles|storm|events|spine|rpc"
		want = []string{"passwords/memory", "passwords/rate", "logins", "tokens", "tokens/signing", "certificates/enroll", "certificates/renew",
			"consoles/cpu", "consoles/postgres", "consoles/settle", "storm", "events", "spine/parse", "spine/append", "rpc/rate", "rpc/latency"}
	}
	args := []string{"-run", which, "-count", "1", "-quick", "-out", dir, "-o", "json"}
	if code := cli.Run(t.Context(), command(), args, os.Getenv, &stdout, &stderr); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s\n%s", code, stdout.Bytes(), stderr.Bytes())
	}
	saved, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	for where, b := range map[string][]byte{"output": stdout.Bytes(), "bench.json": saved} {
		var rep bench.Report
		if err := json.Unmarshal(b, &rep); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		var names []string
		for _, r := range rep.Results {
			names = append(names, r.Name)
			if r.Value <= 0 || r.Reference <= 0 || r.Ratio <= 0 || r.Unit == "" || len(r.Pairs) != 1 {
				t.Errorf("%s: %+v", where, r)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", where, names, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	if bad := cli.Lint(command()); len(bad) > 0 {
		t.Error(strings.Join(bad, "\n"))
	}
	getenv := func(string) string { return "" }
	for _, tc := range []struct {
		args string
		code int
		out  string
	}{
		{"-list", 0, "logins "},
		{"-list -run recov", 0, "recovery "},
		{"-run nothing", cli.ExitUsage, "no bench matches"},
		{"-count 0", cli.ExitUsage, "at least 1"},
		{"-run ( ", cli.ExitUsage, "-run"},
		{"-long -quick", cli.ExitUsage, "want one of them"},
	} {
		var out bytes.Buffer
		if code := cli.Run(t.Context(), command(), strings.Fields(tc.args), getenv, &out, &out); code != tc.code || !strings.Contains(out.String(), tc.out) {
			t.Errorf("bench %s: exit %d, want %d with %q in %s", tc.args, code, tc.code, tc.out, out.String())
		}
	}
}

// TestOneBuild: programs of different builds are refused before anything is measured, not met in the middle of a run.
func TestOneBuild(t *testing.T) {
	dir := t.TempDir()
	say := func(name, line string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	needs := neededBy(table(&commonHouse{}))
	if want := []string{"agentd", "kenneld", "robotd", "robotsim", "s3d"}; !slices.Equal(needs, want) {
		t.Fatalf("benches start %v, want %v", needs, want)
	}
	for _, n := range needs {
		say(n, "echo "+n+" v1.2.0 and more")
	}
	if _, build, done, err := programsFor(t.Context(), dir, needs, t.Logf); err != nil || build != "v1.2.0" {
		t.Errorf("%q, %v", build, err)
	} else {
		done()
	}
	for line, want := range map[string]string{
		"echo robotsim v1.1.9": "agentd is v1.2.0, robotsim is v1.1.9",
		"echo":                 "want NAME VERSION",
		"exit 3":               "exit status 3",
	} {
		say("robotsim", line)
		if _, _, _, err := programsFor(t.Context(), dir, needs, t.Logf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that says %q", line, err, want)
		}
	}
	say("robotsim", "exit 3")
	var out bytes.Buffer
	args := []string{"-run", "cpu", "-bin", dir, "-out", dir}
	if code := cli.Run(t.Context(), command(), args, os.Getenv, &out, &out); code == cli.ExitOK || !strings.Contains(out.String(), "exit status 3") {
		t.Errorf("exit %d: %s", code, out.Bytes())
	}
}

func TestVerdict(t *testing.T) {
	low := &bench.Report{Results: []bench.Result{{Name: "logins", Ratio: 0.4, Bound: 0.5}}}
	if err := verdict(low, false); err != nil {
		t.Errorf("not strict: %v", err)
	}
	if err := verdict(low, true); err == nil || !strings.Contains(err.Error(), "logins is 0.40, want 0.50") {
		t.Errorf("strict: %v", err)
	}
	if err := verdict(&bench.Report{Failed: []bench.Failure{{Name: "rpc", Error: "no broker"}}}, false); err == nil {
		t.Error("a failed bench is a success")
	}
}

// TestHold: a held process goes on when the one who holds it is gone, in whatever way.
func TestHold(t *testing.T) {
	for name, end := range map[string]func(in *io.PipeWriter, cancel context.CancelFunc){
		"input ends":     func(in *io.PipeWriter, _ context.CancelFunc) { in.Close() },
		"a signal comes": func(_ *io.PipeWriter, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			p, err := bench.Start(proc.Spec{Name: "sh", Path: path, Args: []string{"-c", "echo here; while read x; do echo heard $x; done"}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			wait, cancelWait := context.WithTimeout(t.Context(), time.Minute)
			defer cancelWait()
			if _, err := p.Await(wait, "here"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in, feed := io.Pipe()
			said, told := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- holdStill(ctx, p.Pid(), in, told) }()
			if _, err := said.Read(make([]byte, 100)); err != nil { // it holds
				t.Fatal(err)
			}
			if state := stateOf(t, p.Pid()); state != "T" {
				t.Errorf("state %s while held, want T", state)
			}
			end(feed, cancel)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, err := p.Ask(wait, "again", "heard again"); err != nil {
				t.Error(err)
			}
		})
	}
	if err := holdStill(t.Context(), 1, nil, io.Discard); err == nil {
		t.Error("held the first process of the machine")
	}
}

func stateOf(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestEventsAreValid: the cloud would refuse others, and equal ones would compress better than real ones.
func TestEventsAreValid(t *testing.T) {
	evs := makeEvents("vic:00b00000", "bench-1", 3, 100)
	for i := range evs {
		if err := evs[i].Validate(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && evs[i].S1 == evs[i-1].S1 {
			t.Fatalf("events %d and %d are alike", i-1, i)
		}
	}
	if _, err := events.EncodeBatch("b", evs); err != nil {
		t.Fatal(err)
	}
}
