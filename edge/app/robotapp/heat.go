package robotapp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"kennel/edge/power"
	"kennel/infra/logging"
)

// thermalDir is where Linux has its thermometers, below the root: a folder thermal_zoneN each, in whose file temp is the temperature in
// thousandths of a degree Celsius (kernel documentation, ABI/testing/sysfs-class-thermal).
const (
	thermalDir  = "sys/class/thermal"
	thermalZone = "thermal_zone"
)

// heatEvery is how often they are read: twice in the time that a temperature needs to count (power.HeatConfirm). Own default.
const heatEvery = 500 * time.Millisecond

// watchHeat posts the processor's temperature to the control until ctx ends (VEC-PWR-10). Without a thermometer it posts nothing.
func (c *core) watchHeat(ctx context.Context) error {
	root, err := os.OpenRoot(c.cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close() // read only
	tick := time.NewTicker(heatEvery)
	defer tick.Stop()
	known := true
	for {
		celsius, err := hottest(root)
		if err != nil && known {
			c.log.InfoContext(ctx, "processor temperature not known", logging.Err, err)
		}
		if known = err == nil; known && c.running.Load() { // without a body the mailbox is not emptied
			c.control.PostHeat(celsius) // if the mailbox is full the loss is counted, and the next one comes soon
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// hottest returns the highest temperature of all zones, in degrees Celsius: vendors differ in which zone is the processor's, and no other
// one should be hotter for long (own choice). Zones that cannot be read, or have impossible values, are skipped.
func hottest(root *os.Root) (float64, error) {
	dir, err := root.Open(thermalDir)
	if err != nil {
		return 0, err
	}
	zones, err := dir.Readdirnames(-1)
	_ = dir.Close() // read only
	if err != nil {
		return 0, err
	}
	found, most, why := false, 0.0, fs.ErrNotExist
	for _, z := range zones {
		if !strings.HasPrefix(z, thermalZone) {
			continue
		}
		celsius, err := readZone(root, thermalDir+"/"+z+"/temp")
		if err != nil {
			why = err
			continue
		}
		if !found || celsius > most {
			found, most = true, celsius
		}
	}
	if !found {
		return 0, fmt.Errorf("no zone of %s can be read: %w", thermalDir, why)
	}
	return most, nil
}

func readZone(root *os.Root, name string) (float64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, err
	}
	celsius, err := parseZone(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return celsius, nil
}

// parseZone reads a temperature as the kernel writes it.
func parseZone(b []byte) (float64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.20q: want thousandths of a degree as a whole number", b)
	}
	celsius := float64(n) / 1000
	if celsius < power.HeatLeast || celsius > power.HeatMost {
		return 0, fmt.Errorf("%.20q: want %v to %v degrees in thousandths", b, power.HeatLeast, power.HeatMost)
	}
	return celsius, nil
}
