package events

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, x := range []struct {
		name  string
		event Event
		want  string
	}{
		{"units", Event{Name: "robot.memory_info", I1: Num(998400), I2: Num(512), I3: Num(0)}, "memory 998400 KiB, available 512 KiB, agent 0 KiB"},
		{"texts before numbers", Event{Name: "robot.fault_code", S1: "engine crash", I1: Num(914)}, "fault engine crash, code 914"},
		{"yes and no", Event{Name: "battery.on_charger_changed", I1: Num(0), I2: Num(3921)}, "on charger no, battery 3921 mV"},
		{"neither yes nor no", Event{Name: "robot.stalled", I1: Num(1), I2: Num(-2)}, "left yes, right -2"},
		{"unknown event", Event{Name: "mood.event", S2: "happy", I1: Num(2), I4: Num(998400)}, "s2 happy, i1 2, i4 998400"},
		{"more values than the layout has", Event{Name: "robot.locale", S1: "de-DE", S3: "x", I2: Num(7)}, "locale de-DE, s3 x, i2 7"},
		{"a distance", Event{Name: "robot.finished", S1: "go", I1: Num(98), I2: Num(100)}, "order go, moved 98 mm, of 100 mm"},
		{"an angle", Event{Name: "robot.aborted", S1: "turn", I1: Num(98), I2: Num(100)}, "order turn, moved 98 mrad, of 100 mrad"},
		{"a way to the cloud", Event{Name: "cloud.latency", S1: "check", S2: "cloud.example", S3: "no certificate", I1: Num(20), I2: Num(3)},
			"endpoint check, host cloud.example, problem no certificate, connection 20 ms, name servers 3 ms"},
		{"no value", Event{Name: "robot.locale"}, ""},
	} {
		if got := x.event.Words(); got != x.want {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}

// TestLayouts: the table holds valid names of events, and each layout fits into the four fields of a kind.
func TestLayouts(t *testing.T) {
	for name, l := range layouts {
		if err := CheckName(name); err != nil || len(l.s) > 4 || len(l.i) > 4 {
			t.Errorf("%s: %d texts, %d numbers, %v", name, len(l.s), len(l.i), err)
		}
	}
}

// TestDocumented: the events whose values the source documents carry them (VEC-DAS-07, 11, 13, 14, 16, 18, VEC-DGN-13, VEC-LOG-03).
func TestDocumented(t *testing.T) {
	for name, want := range map[string]string{
		"robot.cpu_info":           "s1 governor, s2 set speed, s3 throttled, i1 load (thousandths), i2 clock (kHz), i3 limit (kHz), i4 temperature (m°C)",
		"robot.wifi_info":          "s1 address, s2 network, s3 IP, s4 valid, i1 received (bytes), i2 sent (bytes), i3 receive errors, i4 send errors",
		"robot.ota_download_start": "s1 from, s2 version",
		"robot.ota_download_end":   "s1 outcome, s2 version, s3 problem, i1 code, i2 received (bytes)",
		"robot.kernel_panic":       "s1 file, s2 reason",
		"log.error":                "s1 message, s2 error",
		"robot.fault_code":         "s1 fault, s2 service, i1 code",
		"robot.maintenance_reboot": "s1 outcome, s2 reason, s3 at, i1 uptime (s)",
		"robot.upload_dropped":     "s1 file, s2 reason, s3 kind, s4 answer, i1 files, i2 bytes, i3 since start",
		"behavior.feature.end":     "s1 behaviour",
		"behavior.hlai.change":     "s1 state",
		"experiment.assigned":      "s1 experiment, s2 variation, s3 file, s4 why, i1 version",
		"profile_id.start":         "s1 id",
		"ble_conn_id.stop":         "s1 id",
		"wifi_conn_id.start":       "s1 id",
	} {
		values, known := Describe(name)
		var got []string
		for _, v := range values {
			if v.Unit != "" {
				v.Name += " (" + v.Unit + ")"
			}
			got = append(got, v.Field+" "+v.Name)
		}
		if s := strings.Join(got, ", "); !known || s != want {
			t.Errorf("%s has %s, want %s", name, s, want)
		}
	}
}
