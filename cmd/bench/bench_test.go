package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/infra/bench"
	"kennel/infra/cli"
)

// TestBench runs a benchmark as people do. The others are tried beside their packages, with a tenth of the work.
func TestBench(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-run", "^spine$", "-count", "1", "-quick", "-out", dir, "-o", "json"}
	if code := cli.Run(t.Context(), command(), args, os.Getenv, &stdout, &stderr); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s\n%s", code, stdout.Bytes(), stderr.Bytes())
	}
	saved, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	for where, b := range map[string][]byte{"output": stdout.Bytes(), "bench.json": saved} {
		var rep report
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
		if want := []string{"spine/parse", "spine/append", "spine/head/parse", "spine/head/append"}; !slices.Equal(names, want) || rep.Machine.Cores < 1 {
			t.Errorf("%s: %v on %+v, want %v", where, names, rep.Machine, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Chdir("../..")
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
		{"-run nothing", cli.ExitUsage, `no benchmark of the current folder matches "nothing"`},
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

// TestFind: every benchmark that measures beside a reference is in the list, with a comment that says what it is.
func TestFind(t *testing.T) {
	all, err := find("../..")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range all {
		names = append(names, b.name)
		if len(b.about) < 20 {
			t.Errorf("%s in %s is said to be %q", b.fn, b.pkg, b.about)
		}
	}
	slices.Sort(names)
	want := "abuse archive certificates consoles costs cpu crowd delta documentcpu documentlatency documentreads documentwrites events facelag gatewayreads liveframes logins loop loopalone manydocuments memory mind mix motionfiles motionplay opus opuscrowd opusof8clients passwords pawn pawncompile pleo recovery rpc sdk settings signing sound speech speechof8clients spine storm tokens updatechecks vectorsdk vectorsdkbattery"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerdict(t *testing.T) {
	low := &report{Results: []bench.Result{{Line: bench.Line{Name: "logins", Bound: 0.5}, Ratio: 0.4}}}
	if err := low.verdict(false); err != nil {
		t.Errorf("not strict: %v", err)
	}
	if err := low.verdict(true); err == nil || !strings.Contains(err.Error(), "logins is 0.40, want 0.50") {
		t.Errorf("strict: %v", err)
	}
	if err := (&report{Failed: []failure{{Name: "rpc", Error: "no broker"}}}).verdict(false); err == nil {
		t.Error("a failed benchmark is a success")
	}
}

// TestTable: the table says all, also which benchmarks failed and why.
func TestTable(t *testing.T) {
	rep := &report{Version: "v1", Failed: []failure{{"bad", why("goos: linux\n--- FAIL: BenchmarkBad\n    bad_test.go:12: no broker\nFAIL\n")}}, Results: []bench.Result{
		{Line: bench.Line{Name: "good", Bound: 0.5, Unit: "x/s", Note: "as it is", Plot: "  ▁█\n"}, Value: 1234.5, Reference: 5000, Ratio: 0.25},
		{Line: bench.Line{Name: "free", Unit: "ms"}, Value: 0.123456},
	}}
	var out strings.Builder
	if err := rep.write(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1, 00", "1234", "0.25", "MISSED", "0.123", "good: as it is", "▁█", "bad FAILED: bad_test.go:12: no broker"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if got := why("build failed"); got != "build failed" {
		t.Errorf("%q", got)
	}
}
