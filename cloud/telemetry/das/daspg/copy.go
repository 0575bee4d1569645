package daspg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
)

var copyColumns = []string{
	"received", "grp", "thing", "boot_id", "seq", "ts", "uptime_ms", "unsynced", "level", "source", "robot_version", "profile_id",
	"feature_type", "feature_run_id", "ble_conn_id", "wifi_conn_id", "event", "s1", "s2", "s3", "s4", "i1", "i2", "i3", "i4",
}

func copyEvents(ctx context.Context, tx pgx.Tx, received time.Time, grp int64, fresh []das.Fresh) error {
	return copyInto(ctx, tx, "das_event", received, grp, fresh)
}

func copyInto(ctx context.Context, tx pgx.Tx, table string, received time.Time, grp int64, fresh []das.Fresh) error {
	i := 0
	row := make([]any, len(copyColumns))
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, copyColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == len(fresh) {
			return nil, nil
		}
		e := fresh[i].Event
		row = append(row[:0], received, grp, string(fresh[i].Thing), e.BootID, int64(e.Seq), e.TS, e.UptimeMS, e.Unsynced, string(e.Level),
			e.Source, e.RobotVersion, e.ProfileID, e.FeatureType, e.FeatureRunID, text(e.BLEConnID), text(e.WifiConnID), e.Name,
			text(e.S1), text(e.S2), text(e.S3), text(e.S4), number(e.I1), number(e.I2), number(e.I3), number(e.I4))
		i++
		return row, nil
	}))
	return err
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(n events.Int) any {
	if !n.Set {
		return nil
	}
	return n.N
}
