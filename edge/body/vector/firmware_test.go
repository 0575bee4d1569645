package vector

import (
	"log/slog"
	"testing"
	"time"

	"kennel/edge/body/species"
	"kennel/edge/body/vector/vectordriver"
)

// TestProgressIsTold: VEC-WDOG-02: each block of an update says that the attempt to open the body works.
func TestProgressIsTold(t *testing.T) {
	var told []time.Duration
	v := &parts{Host: species.Host{Log: slog.New(slog.DiscardHandler), Busy: func(d time.Duration) { told = append(told, d) }}}
	progress := v.progress(t.Context())
	for block := range 3 {
		progress(vectordriver.Progress{Phase: vectordriver.WriteBlocks, Attempt: 1, Done: block, Total: 3})
	}
	if len(told) != 3 || told[2] != updatePatience {
		t.Errorf("told %v", told)
	}
}

// TestRate: a rate that the sensors do not have is refused.
func TestRate(t *testing.T) {
	var r rate
	if err := r.Set("400"); err != nil || r.String() != "400" {
		t.Errorf("%v, %v", r.String(), err)
	}
	for _, s := range []string{"7", "x"} {
		if r.Set(s) == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
