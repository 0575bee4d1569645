package metrics

import (
	"context"
	"errors"
	"time"

	"kennel/infra/diskspace"
	"kennel/infra/telemetry"
)

// Volumes returns a watch of folders, each NAME=/FOLDER, whose space is shown as metrics.
func (m *Meters) Volumes(folders []string) (*diskspace.Watch, error) {
	byName, err := diskspace.Folders(folders)
	if err != nil {
		return nil, err
	}
	w := diskspace.New(byName, diskspace.Stat, time.Now)
	samples := func(of func(diskspace.Space) uint64) func(context.Context) ([]telemetry.Sample, error) {
		return func(context.Context) (out []telemetry.Sample, _ error) {
			for _, u := range w.Uses() {
				out = append(out, telemetry.Sample{Labels: []string{u.Name}, Value: float64(of(u.Space))})
			}
			return out, nil
		}
	}
	return w, errors.Join(
		m.Asked(telemetry.Metric{Name: "kennel_volume_free_bytes", Help: "Free space of the volume that a folder of this process is on."}, []string{"folder"}, 0,
			samples(func(s diskspace.Space) uint64 { return s.Free })),
		m.Asked(telemetry.Metric{Name: "kennel_volume_size_bytes", Help: "Size of the volume that a folder of this process is on."}, []string{"folder"}, 0,
			samples(func(s diskspace.Space) uint64 { return s.Size })))
}
