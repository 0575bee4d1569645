package dasfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile"
	"kennel/cloud/telemetry/das/dasfile/dasfiletest"
	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// sample are events with every field, with none, and with text that is awkward in a file.
func sample() []das.Record {
	at := time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)
	full := events.Event{Source: "vic-engine", TS: at.UnixMilli() - 7, Seq: events.MaxSeq, Level: events.Error, RobotID: "00e20100", RobotVersion: "2.0.1.6091", BootID: "b-1", ProfileID: "p.x", FeatureType: "f",
		FeatureRunID: "r", BLEConnID: "ble", WifiConnID: "wifi", Name: "battery.low", S1: "=SUM(A1)", S2: "two\nlines, \"quoted\"", S3: "é\u2028", S4: "x", I1: events.Num(0), I2: events.Num(-1),
		I3: events.Num(math.MaxInt64), I4: events.Num(math.MinInt64), UptimeMS: 5, Unsynced: true}
	bare := events.Event{Level: events.Info, RobotID: "1", BootID: "b", Name: "a.b"}
	return []das.Record{{Thing: "vic:00e20100", Received: at, Event: full}, {Thing: "vic:1", Received: at.Add(time.Hour), Event: bare}}
}

func write(t *testing.T, f dasfile.Format, recs []das.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := dasfile.New(f, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestParquetRoundTrip(t *testing.T) {
	want := sample()
	for len(want) < 8192+100 { // more than one group of rows
		r := want[1]
		r.Seq, r.S1 = uint64(len(want)), fmt.Sprint(len(want))
		want = append(want, r)
	}
	b := write(t, dasfile.Parquet, want)
	got := dasfiletest.Read(t, b)
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("record %d of %d\n%+v\nwant\n%+v", i, len(got), got[min(i, len(got)-1)], want[i])
		}
	}
}

// TestParquetByAnotherReader: a reader that is not ours (hyparquet, of npm) finds the same.
func TestParquetByAnotherReader(t *testing.T) {
	modules, err := filepath.Abs("../../../../infra/browser/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules + "/hyparquet"); err != nil {
		t.Fatalf("%v: make setup-test installs it", err)
	}
	file := filepath.Join(t.TempDir(), "events.parquet")
	if err := os.WriteFile(file, write(t, dasfile.Parquet, sample()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/read.mjs", modules, file)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Rows   []map[string]any
		Values map[string][]events.Described
	}
	if err := json.Unmarshal(out, &read); err != nil || len(read.Rows) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	got := read.Rows
	if want := map[string][]events.Described{"battery.low": {{Field: "i1", Name: "battery", Unit: "mV"}}}; !reflect.DeepEqual(read.Values, want) {
		t.Errorf("the values are called %+v; want %+v", read.Values, want)
	}
	for key, want := range map[string]any{"received": "2026-11-21T12:00:00.123Z", "thing": "vic:00e20100", "seq": "9223372036854775806", "ts": "2026-11-21T12:00:00.116Z", "unsynced": true, "level": "error",
		"event": "battery.low", "s2": "two\nlines, \"quoted\"", "s3": "é\u2028", "i1": "0", "i2": "-1", "i3": "9223372036854775807", "i4": "-9223372036854775808", "wifi_conn_id": "wifi"} {
		if !reflect.DeepEqual(got[0][key], want) {
			t.Errorf("%s: %v (%[2]T); want %v", key, got[0][key], want)
		}
	}
	if got[1]["s1"] != nil || got[1]["i1"] != nil || got[1]["thing"] != "vic:1" {
		t.Errorf("an event without values: %v", got[1])
	}
}

// TestCSV: a cell that a table calculator would take for a formula is a text.
func TestCSV(t *testing.T) {
	lines := string(write(t, dasfile.CSV, sample()))
	for _, want := range []string{"received,thing,boot_id,seq", `,'=SUM(A1),"two`, ",0,-1,9223372036854775807,-9223372036854775808,", "2026-11-21T12:00:00.123456Z,vic:00e20100"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %s in\n%s", want, lines)
		}
	}
	if _, err := dasfile.New("xml", nil); errs.KindOf(err) != errs.Invalid {
		t.Errorf("%v", err)
	}
}
