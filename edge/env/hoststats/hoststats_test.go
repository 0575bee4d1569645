package hoststats

import (
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// files of a robot, as the original has them (seed, tables 593 and 594).
var files = map[string]string{
	"proc/meminfo":    "MemTotal:         500000 kB\nMemFree: x\nnonsense\nMemAvailable:  123456 kB\n",
	"proc/self/statm": "1000 50 3 4 5 6 7\n",
	"proc/loadavg":    "0.25 0.10 0.05 1/100 123\n",
	"proc/uptime":     "512.25 100.00\n",
	"proc/812/comm":   "vic-engine\n",
	"proc/812/stat":   "812 (vic) engine) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 7 0 0 0 1000 0 0\n",
	"proc/900/comm":   "bash\n",
	"proc/900/stat":   "900 (bash) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 7 0 0 0 1000 0 0\n",
	"proc/77/stat":    "77 (agentd) S 1 1 1 0 -1 0 0 0 0 0 10 x 0 0 20 0 7 0 0 0 1000 0 0\n",

	"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_cur_freq": "400000\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "533333\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "interactive\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_setspeed": "<unsupported>\n",
	"sys/devices/virtual/thermal/thermal_zone3/temp":       "61\n",
	"sys/block/mmcblk0/size":                               "7634944\n",
	"sys/class/net/wlan0/address":                          "00:17:c4:01:02:03\n",
	"sys/class/net/wlan0/operstate":                        "up\n",
	"sys/class/net/wlan0/statistics/rx_bytes":              "1000\n",
	"sys/class/net/wlan0/statistics/rx_errors":             "2\n",
	"sys/class/net/wlan0/statistics/tx_bytes":              "3000\n",
	"sys/class/net/wlan0/statistics/tx_errors":             "4\n",
}

func robot(t *testing.T, files map[string]string) Source {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for name, text := range files {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Robot(root, root.Name())
}

// TestRead is VEC-DAS-13 and VEC-DAS-14.
func TestRead(t *testing.T) {
	s := robot(t, files)
	s.Statfs = func(_ string, st *syscall.Statfs_t) error {
		st.Bsize, st.Blocks, st.Bavail = 4096, 512, 256
		return nil
	}
	s.Network = func(string) (string, netip.Addr) { return "home", netip.MustParseAddr("192.168.1.7") }
	want := Sample{
		MemTotalKiB: 500000, MemAvailableKiB: 123456, SelfKiB: int64(50 * os.Getpagesize() >> 10), LoadMilli: 250, DiskTotalMiB: 2, DiskFreeMiB: 1,
		FlashMiB: 3728, UptimeMS: 512250,
		CPU:  CPU{MilliC: 61000, KHz: 400000, Limit: 533333, Governor: "interactive"},
		Wifi: Wifi{Present: true, Up: true, MAC: "00:17:c4:01:02:03", SSID: "home", IP: "192.168.1.7", RxBytes: 1000, TxBytes: 3000, RxErrors: 2, TxErrors: 4},
	}
	got := s.Read()
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if v := got.Wifi.Valid(); v != "mac ssid ip" {
		t.Errorf("valid %q", v)
	}
	s.Network = nil
	if v := s.Read().Wifi.Valid(); v != "mac" {
		t.Errorf("valid %q, want mac: nothing says the others", v)
	}
	if got := (Source{}).Read(); got != (Sample{}) {
		t.Errorf("nothing to read: %+v", got)
	}
	if got := robot(t, nil).Read(); got.MemTotalKiB == 0 || got.SelfKiB == 0 || got.DiskTotalMiB == 0 || got.UptimeMS == 0 || got.Wifi != (Wifi{}) || got.CPU != (CPU{}) {
		t.Errorf("a simulated robot: %+v, want memory and disk of this machine, and nothing else of it", got)
	}
}

// TestProcesses: processor time and memory of the robot's services (VEC-DAS-14).
func TestProcesses(t *testing.T) {
	engine := Process{Name: "vic-engine", PID: 812, CPU: 3000, KiB: 1000 * int64(os.Getpagesize()) >> 10, Threads: 7}
	if got := robot(t, files).Processes(map[string]int{"agentd": 77}); !slices.Equal(got, []Process{engine}) {
		t.Errorf("%+v, want only %+v: the numbers of agentd are broken", got, engine)
	}
	// Not this process, of which an emulator makes numbers up.
	parent := robot(t, nil).Processes(map[string]int{"go": os.Getppid()})
	if len(parent) != 1 || parent[0].Name != "go" || parent[0].KiB < 1000 || parent[0].Threads < 1 {
		t.Errorf("the parent: %+v", parent)
	}
}

// TestMeter: the share of a program that was there before; of a new one there is none yet.
func TestMeter(t *testing.T) {
	var m Meter
	at := time.Unix(1000, 0)
	m.Measure([]Process{{PID: 1, CPU: 500}}, at)
	got := m.Measure([]Process{{PID: 1, CPU: 750}, {PID: 2, CPU: 10}}, at.Add(10*time.Second))
	if want := []Load{{Process{PID: 1, CPU: 750}, 25}, {Process{PID: 2, CPU: 10}, -1}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestNetwork: this machine's own answer, whatever it is, comes without a failure.
func TestNetwork(t *testing.T) {
	if ssid, ip := network("lo"); ssid != "" || ip.IsValid() {
		t.Errorf("the loopback is in network %q with address %v", ssid, ip)
	}
}

func FuzzParseMeminfo(f *testing.F) {
	f.Add([]byte("MemTotal: 1 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for k, n := range parseMeminfo(b) {
			if n < 0 {
				t.Fatalf("%q: %d", k, n)
			}
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add(strings.TrimSpace(files["proc/812/stat"]))
	f.Add(")")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parseStat(text); ok && (p.CPU < 0 || p.KiB < 0 || p.Threads < 0) {
			t.Fatalf("%+v", p)
		}
	})
}
