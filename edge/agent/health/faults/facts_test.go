package faults

import (
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"silence of a hung service (VEC-WDOG-05)": {HungAfter, 10 * time.Second},
		"heartbeat (VEC-WDOG-05)":                 {Heartbeat, time.Second},
		"folder of reports (VEC-FLT-09)":          {ReportsDir, "data/fault-reports"},
		"log of the system (VEC-CRS-02)":          {systemLog, "var/log/messages"},
		"logs of the programs (VEC-CRS-02)":       {programLogs, "data/data/com.anki.victor/cache/vic-logmgr"},
		"lines of a log (VEC-CRS-02)":             {tailLines, 500},
		"FIFO of fault codes (VEC-FLT-03)":        {File, "run/fault_code"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
