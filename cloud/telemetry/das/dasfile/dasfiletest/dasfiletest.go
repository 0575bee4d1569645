// Package dasfiletest reads the Parquet files that package dasfile writes.
package dasfiletest

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile"
	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// Read returns the events of a Parquet file.
func Read(t testing.TB, b []byte) (out []das.Record) {
	t.Helper()
	rows, err := parquet.Read[dasfile.Row](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("Parquet file of %d bytes: %v", len(b), err)
	}
	for _, r := range rows {
		out = append(out, record(r))
	}
	return out
}

func record(r dasfile.Row) das.Record {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	number := func(n *int64) events.Int {
		if n == nil {
			return events.Int{}
		}
		return events.Num(*n)
	}
	id := thing.ID(r.Thing)
	return das.Record{Thing: id, Received: time.UnixMicro(r.Received).UTC(), Event: events.Event{
		Source: r.Source, TS: r.TS, Seq: uint64(r.Seq), Level: events.Level(r.Level), RobotID: id.Serial(), RobotVersion: r.RobotVersion, BootID: r.BootID, ProfileID: r.ProfileID,
		FeatureType: r.FeatureType, FeatureRunID: r.FeatureRunID, BLEConnID: text(r.BLEConnID), WifiConnID: text(r.WifiConnID), Name: r.Event,
		S1: text(r.S1), S2: text(r.S2), S3: text(r.S3), S4: text(r.S4), I1: number(r.I1), I2: number(r.I2), I3: number(r.I3), I4: number(r.I4), UptimeMS: r.UptimeMS, Unsynced: r.Unsynced}}
}
