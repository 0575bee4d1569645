// Package dasfile writes events into files for other programs: CSV, lines of JSON, and Parquet.
//
// CSV and Parquet have the same columns: those of the event as a robot sends it (VEC-DAS-01), with when it was received, and the thing. A value that an event does not
// have is empty, null in Parquet. Times are UTC, in milliseconds; ts is by the robot's clock. What the values s1 to i4 are called: CSV has a column words, and Parquet the
// entry kennel.values of the file's metadata, JSON of the names and units by event.
package dasfile

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// Format is a form of a file.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	NDJSON  Format = "ndjson"
	Parquet Format = "parquet"
)

// Formats are all of them.
var Formats = []Format{CSV, NDJSON, Parquet}

// ParseFormat reads one of Formats.
func ParseFormat(s string) (Format, error) {
	if f := Format(s); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", errs.New(errs.Invalid, "format %.20q: want one of %s", s, errs.List(Formats))
}

// Media returns the media type of a file.
func (f Format) Media() string {
	return map[Format]string{CSV: "text/csv; charset=utf-8; header=present", NDJSON: "application/x-ndjson", Parquet: "application/vnd.apache.parquet"}[f]
}

// Writer writes events into one file.
type Writer interface {
	Write(das.Record) error
	// Close ends the file; w stays open.
	Close() error
}

// New returns a writer of a format that writes to w.
func New(f Format, w io.Writer) (Writer, error) {
	switch f {
	case CSV:
		c := &csvWriter{csv.NewWriter(w)}
		return c, c.w.Write(csvHead)
	case NDJSON:
		return lines{json.NewEncoder(w)}, nil
	case Parquet:
		return &rows{w: parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows)), values: map[string][]events.Described{}}, nil
	}
	_, err := ParseFormat(string(f))
	return nil, err
}

type lines struct{ to *json.Encoder }

func (l lines) Write(r das.Record) error { return l.to.Encode(r) }
func (l lines) Close() error             { return nil }

var csvHead = []string{"received", "thing", "boot_id", "seq", "ts", "uptime_ms", "unsynced", "level", "source", "robot_version", "profile_id", "feature_type", "feature_run_id",
	"ble_conn_id", "wifi_conn_id", "event", "s1", "s2", "s3", "s4", "i1", "i2", "i3", "i4", "words"}

type csvWriter struct{ w *csv.Writer }

func (c *csvWriter) Write(r das.Record) error {
	number := func(n events.Int) string {
		if !n.Set {
			return ""
		}
		return strconv.FormatInt(n.N, 10)
	}
	cells := []string{r.Received.UTC().Format(time.RFC3339Nano), string(r.Thing), r.BootID, strconv.FormatUint(r.Seq, 10), time.UnixMilli(r.TS).UTC().Format(time.RFC3339Nano), strconv.FormatInt(r.UptimeMS, 10),
		strconv.FormatBool(r.Unsynced), string(r.Level), r.Source, r.RobotVersion, r.ProfileID, r.FeatureType, r.FeatureRunID, r.BLEConnID, r.WifiConnID, r.Name,
		r.S1, r.S2, r.S3, r.S4, number(r.I1), number(r.I2), number(r.I3), number(r.I4), r.Words()}
	for i, s := range cells {
		if strings.IndexAny(s, "=+-@\t\r") == 0 && (i < 20 || i == len(cells)-1) { // a table calculator takes it for a formula; numbers are none
			cells[i] = "'" + s
		}
	}
	return c.w.Write(cells)
}

func (c *csvWriter) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// groupRows is how many rows are held in memory until they are written; events are some hundred bytes, at most 20 kB.
const groupRows = 8192

// Row is an event as Parquet has it.
type Row struct {
	Received     int64   `parquet:"received,timestamp(microsecond)"`
	Thing        string  `parquet:"thing,dict"`
	BootID       string  `parquet:"boot_id,dict"`
	Seq          int64   `parquet:"seq,delta"`
	TS           int64   `parquet:"ts,timestamp(millisecond)"`
	UptimeMS     int64   `parquet:"uptime_ms"`
	Unsynced     bool    `parquet:"unsynced"`
	Level        string  `parquet:"level,dict"`
	Source       string  `parquet:"source,dict"`
	RobotVersion string  `parquet:"robot_version,dict"`
	ProfileID    string  `parquet:"profile_id,dict"`
	FeatureType  string  `parquet:"feature_type,dict"`
	FeatureRunID string  `parquet:"feature_run_id,dict"`
	BLEConnID    *string `parquet:"ble_conn_id,dict,optional"`
	WifiConnID   *string `parquet:"wifi_conn_id,dict,optional"`
	Event        string  `parquet:"event,dict"`
	S1           *string `parquet:"s1,optional"`
	S2           *string `parquet:"s2,optional"`
	S3           *string `parquet:"s3,optional"`
	S4           *string `parquet:"s4,optional"`
	I1           *int64  `parquet:"i1,optional"`
	I2           *int64  `parquet:"i2,optional"`
	I3           *int64  `parquet:"i3,optional"`
	I4           *int64  `parquet:"i4,optional"`
}

type rows struct {
	w      *parquet.GenericWriter[Row]
	one    [1]Row
	values map[string][]events.Described // of the events written, those whose layout is known
}

func (w *rows) Write(r das.Record) error {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	number := func(n events.Int) *int64 {
		if !n.Set {
			return nil
		}
		return &n.N
	}
	if _, noted := w.values[r.Name]; !noted {
		if layout, known := events.Describe(r.Name); known {
			w.values[r.Name] = layout
		}
	}
	w.one[0] = Row{r.Received.UnixMicro(), string(r.Thing), r.BootID, int64(r.Seq), r.TS, r.UptimeMS, r.Unsynced, string(r.Level), r.Source, r.RobotVersion, r.ProfileID, r.FeatureType,
		r.FeatureRunID, text(r.BLEConnID), text(r.WifiConnID), r.Name, text(r.S1), text(r.S2), text(r.S3), text(r.S4), number(r.I1), number(r.I2), number(r.I3), number(r.I4)}
	_, err := w.w.Write(w.one[:])
	return err
}

func (w *rows) Close() error {
	names, err := json.Marshal(w.values)
	if err != nil {
		return err
	}
	w.w.SetKeyValueMetadata("kennel.values", string(names))
	return w.w.Close()
}

// Name is the name of a file for downloads.
func (f Format) Name() string { return fmt.Sprintf("events.%s", f) }
