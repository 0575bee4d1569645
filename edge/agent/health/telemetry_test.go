package health

import (
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/edge/env/hoststats"
	"kennel/infra/api/events"
)

// computer is a robot's computer whose values a test sets.
type computer struct {
	t    *testing.T
	host reporter
	root *os.Root
	got  []events.Event
	now  time.Time
}

func newComputer(t *testing.T) *computer {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	c := &computer{t: t, root: root, now: time.Unix(1e9, 0)}
	c.host = reporter{emit: func(e events.Event) { c.got = append(c.got, e) }, source: hoststats.Robot(root, root.Name()), core: func() int { return 0 },
		clock: func() (bool, bool) { return false, false }}
	return c
}

func (c *computer) set(name, text string) {
	c.t.Helper()
	if err := c.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := c.root.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// report returns the events of one report, by name and values.
func (c *computer) report(names ...string) (out []string) {
	c.t.Helper()
	c.got, c.now = nil, c.now.Add(30*time.Second)
	c.host.report(c.now)
	for _, e := range c.got {
		if err := events.CheckName(e.Name); err != nil {
			c.t.Error(err)
		}
		if slices.Contains(names, e.Name) {
			out = append(out, strings.TrimSpace(e.Name+" "+e.Words()))
		}
	}
	return out
}

func (c *computer) want(got []string, want ...string) {
	c.t.Helper()
	if !slices.Equal(got, want) {
		c.t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

// TestProcessor is VEC-DAS-14 and VEC-DGN-05: the limit of the clock is reported from the start, and a lower one as throttling.
func TestProcessor(t *testing.T) {
	c := newComputer(t)
	const freq = "sys/devices/system/cpu/cpu0/cpufreq/"
	c.set("proc/loadavg", "0.50 0 0 1/2 3")
	c.want(c.report("robot.cpu_info", "cpu.temperature_stats"), "robot.cpu_info load 500 thousandths") // a computer that says nothing
	c.host.reports = 0
	c.set(freq+"scaling_max_freq", "533333")
	c.set(freq+"cpuinfo_cur_freq", "400000")
	c.set(freq+"scaling_governor", "interactive")
	c.set("sys/devices/virtual/thermal/thermal_zone3/temp", "61000")
	c.want(c.report("robot.cpu_info", "cpu.temperature_stats"),
		"robot.cpu_info governor interactive, load 500 thousandths, clock 400000 kHz, limit 533333 kHz, temperature 61000 m°C",
		"cpu.temperature_stats least 61000 m°C, most 61000 m°C, mean 61000 m°C, samples 1")
	c.set(freq+"scaling_max_freq", "400000")
	c.want(c.report("robot.cpu_info"), "robot.cpu_info governor interactive, throttled throttled, load 500 thousandths, clock 400000 kHz, limit 400000 kHz, temperature 61000 m°C")
	c.set("sys/devices/virtual/thermal/thermal_zone3/temp", "81000")
	var all []string
	for range seldom - 1 {
		all = append(all, c.report("cpu.temperature_stats")...)
	}
	c.want(all, "cpu.temperature_stats least 61000 m°C, most 81000 m°C, mean 79000 m°C, samples 10")
}

// TestStorage: the size of the flash and whether the medical record is valid.
func TestStorage(t *testing.T) {
	c := newComputer(t)
	c.host.source.Statfs = nil
	c.set("sys/block/mmcblk0/size", "7634944")
	c.want(c.report("robot.disk_info"), "robot.disk_info disk 0 MiB, free 0 MiB, flash 3728 MiB, medical record valid yes")
	c.host.emr = "emr: no such file"
	c.want(c.report("robot.disk_info"), "robot.disk_info problem emr: no such file, disk 0 MiB, free 0 MiB, flash 3728 MiB, medical record valid no")
}

// TestMemory: memory and the time since the system's start.
func TestMemory(t *testing.T) {
	c := newComputer(t)
	c.set("proc/meminfo", "MemTotal: 500000 kB\nMemAvailable: 123456 kB")
	c.set("proc/self/statm", "1 0")
	c.set("proc/uptime", "512.25 100.00")
	c.want(c.report("robot.memory_info"), "robot.memory_info memory 500000 KiB, available 123456 KiB, agent 0 KiB, uptime 512250 ms")
}

// TestServices: processor time and memory of each service (VEC-DAS-14).
func TestServices(t *testing.T) {
	c := newComputer(t)
	c.set("proc/812/comm", "vic-engine")
	stat := func(ticks string) {
		c.set("proc/812/stat", "812 (vic-engine) S 1 1 1 0 -1 0 0 0 0 0 "+ticks+" 0 0 0 20 0 7 0 0 0 256 0 0")
	}
	stat("1000")
	c.report()
	stat("4000") // 30 s of 300
	var all []string
	for range seldom {
		all = append(all, c.report("robot.service_info")...)
	}
	slices.Sort(all)
	page := os.Getpagesize() >> 10
	if len(all) != 2 || !strings.HasPrefix(all[0], "robot.service_info service agentd, ") ||
		all[1] != "robot.service_info service vic-engine, processor 100 thousandths, memory "+strconv.Itoa(256*page)+" KiB, threads 7" {
		t.Errorf("%q", all)
	}
}

// TestWifi is VEC-DAS-13 and VEC-DAS-18: statistics with what of them is valid, and the session of each connection.
func TestWifi(t *testing.T) {
	c := newComputer(t)
	names := []string{"wifi.initial_state", "wifi.connection", "wifi.disconnection", "wifi_conn_id.start", "wifi_conn_id.stop", "robot.wifi_info"}
	if got := c.report(names...); len(got) != 0 {
		t.Errorf("without Wi-Fi: %q", got)
	}
	c.host.reports = 0
	const dev = "sys/class/net/wlan0/"
	for name, text := range map[string]string{"address": "00:17:c4:01:02:03", "operstate": "down", "statistics/rx_bytes": "1", "statistics/tx_bytes": "2",
		"statistics/rx_errors": "3", "statistics/tx_errors": "4"} {
		c.set(dev+name, text)
	}
	const counts = "received 1 bytes, sent 2 bytes, receive errors 3, send errors 4"
	c.want(c.report(names...), "wifi.initial_state connected no", "robot.wifi_info address 00:17:c4:01:02:03, valid mac, "+counts)
	c.want(c.report(names...))
	c.set(dev+"operstate", "up")
	ssid := "home"
	c.host.source.Network = func(string) (string, netip.Addr) { return ssid, netip.MustParseAddr("192.168.1.7") }
	up := c.report(names...)
	first := c.host.session
	c.want(up, "wifi_conn_id.start id "+first, "wifi.connection network home, address 192.168.1.7",
		"robot.wifi_info address 00:17:c4:01:02:03, network home, IP 192.168.1.7, valid mac ssid ip, "+counts)
	c.want(c.report(names...))
	ssid = "office"
	c.want(c.report(names...)[:4], "wifi.disconnection network home", "wifi_conn_id.stop id "+first, "wifi_conn_id.start id "+c.host.session,
		"wifi.connection network office, address 192.168.1.7")
	c.set(dev+"operstate", "down")
	c.want(c.report(names...)[:1], "wifi.disconnection network office")
	if c.host.session != "" {
		t.Error("the session outlives the connection")
	}
}

// TestTimesync: the moment from which the robot's clock is right.
func TestTimesync(t *testing.T) {
	c := newComputer(t)
	c.set("proc/uptime", "12.5 1")
	var agrees, known bool
	c.host.clock = func() (bool, bool) { return agrees, known }
	c.want(c.report("ntp.timesync"))
	known = true
	c.want(c.report("ntp.timesync"))
	agrees = true
	c.want(c.report("ntp.timesync"), "ntp.timesync uptime 12500 ms")
	c.want(c.report("ntp.timesync"))
}

// BenchmarkReport is the processor time of one report, of which there is one in 30 s.
func BenchmarkReport(b *testing.B) {
	root, err := os.OpenRoot("/")
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	h := reporter{emit: func(events.Event) {}, source: hoststats.Robot(root, "/"), core: func() int { return 0 }, clock: func() (bool, bool) { return true, true }}
	b.ReportAllocs()
	for b.Loop() {
		h.report(time.Now())
	}
}
