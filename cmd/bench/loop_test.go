package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/bench"
)

// TestLoop: the loop's figures come from robotd itself; what they are, this machine decides.
func TestLoop(t *testing.T) {
	bin, _, done, err := programsFor(t.Context(), "", []string{"robotd", "robotsim"}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	env := &bench.Env{Count: 1, Quick: true, Bin: bin, Log: t.Logf}
	results, err := withCompany(t.Context(), env, company{"full", "one process that never waits and a peer that asks without end", 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		if r.Value <= 0 || r.Reference <= 0 || r.Ratio <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(names, " "); got != "loop/full/p50 loop/full/p99 loop/full/missed loop/full/step" {
		t.Error(got)
	}
	if !strings.Contains(results[0].Note, "cyclictest meanwhile: ") {
		t.Errorf("without cyclictest: %s", results[0].Note)
	}
	if !strings.Contains(results[0].Note, " % of its processors' time") {
		t.Errorf("without what the host gave to others: %s", results[0].Note)
	}
	if _, err := withCompany(t.Context(), &bench.Env{Bin: filepath.Join(os.TempDir(), "nothing here")}, company{}); err == nil {
		t.Error("measured without programs")
	}
}

func TestQuantiles(t *testing.T) {
	p50, p99, err := quantiles([]byte("# /dev/cpu_dma_latency set to 0us\n# Histogram\n000004 000001\n000005 000097\n000009 000002\n# Total: 000000100\n# Max Latencies: 00009\n"))
	if err != nil || p50 != 5 || p99 != 9 {
		t.Errorf("p50 %d, p99 %d, %v", p50, p99, err)
	}
	for _, bad := range []string{"", "# nothing\n", "000004\n", "4 4 4\n", "x 4\n", "-1 4\n"} {
		if _, _, err := quantiles([]byte(bad)); err == nil {
			t.Errorf("%q is a histogram", bad)
		}
	}
}

func FuzzQuantiles(f *testing.F) {
	f.Add([]byte("# Histogram\n000004 000001\n000005 000097\n"))
	f.Add([]byte("1 9223372036854775807\n2 9223372036854775807"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p50, p99, err := quantiles(b); err == nil && (p50 < 0 || p99 < 0) {
			t.Errorf("%q: %d, %d", b, p50, p99)
		}
	})
}
