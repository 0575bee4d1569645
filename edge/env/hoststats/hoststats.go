// Package hoststats samples the robot's computer: memory, load, storage, processor and Wi-Fi (VEC-DAS-13, VEC-DAS-14). The values come from the files that
// the original read, below the robot's root. Of a simulated robot, whose root has no proc, memory and load are the machine's.
package hoststats

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kennel/edge/env/robotfs"
)

// Sample is one look at the host. Zero fields could not be read.
type Sample struct {
	MemTotalKiB     int64
	MemAvailableKiB int64
	SelfKiB         int64 // resident memory of this process
	LoadMilli       int64 // load average of the last minute, in thousandths
	DiskTotalMiB    int64 // of the file system with the robot's data
	DiskFreeMiB     int64
	FlashMiB        int64 // of the flash memory as a whole
	UptimeMS        int64 // since the system's start
	CPU             CPU
	Wifi            Wifi
}

// CPU is the processor as VEC-DAS-14 wants it. Frequencies in kHz.
type CPU struct {
	MilliC   int64 // temperature in thousandths of a degree Celsius
	KHz      int64 // now
	Limit    int64 // the highest frequency that is permitted (VEC-DGN-05)
	Governor string
	SetSpeed string // the frequency that the governor was given; most governors have none
}

// Wifi is the network interface of VEC-DAS-13. A text that is not valid is empty.
type Wifi struct {
	Present            bool
	Up                 bool
	MAC, SSID, IP      string
	RxBytes, TxBytes   int64
	RxErrors, TxErrors int64
}

// Valid lists those of mac, ssid and ip that are valid.
func (w Wifi) Valid() string {
	var out []string
	for _, v := range [...]struct{ name, value string }{{"mac", w.MAC}, {"ssid", w.SSID}, {"ip", w.IP}} {
		if v.value != "" {
			out = append(out, v.name)
		}
	}
	return strings.Join(out, " ")
}

// Source is where a Sample is read from. The zero value reads nothing.
type Source struct {
	ReadFile func(name string) ([]byte, error)               // by absolute name; for one that is absent fs.ErrNotExist
	ReadDir  func(name string) ([]string, error)             // names in a folder
	Statfs   func(path string, st *syscall.Statfs_t) error   //
	Data     string                                          // folder on the file system to report
	Network  func(iface string) (ssid string, ip netip.Addr) // what no file says; nil: not known
}

// Robot reads the robot below root, whose folder is data.
func Robot(root *os.Root, data string) Source {
	s := Source{Statfs: syscall.Statfs, Data: data}
	s.ReadFile = func(name string) ([]byte, error) {
		b, err := robotfs.ReadFile(root, name[1:])
		if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "/proc/") {
			return os.ReadFile(name)
		}
		return b, err
	}
	s.ReadDir = func(name string) ([]string, error) {
		d, err := root.Open(name[1:])
		if err != nil {
			return nil, err
		}
		defer d.Close() // read only
		return d.Readdirnames(-1)
	}
	if data == "/" { // this machine is the robot
		s.Network = network
	}
	return s
}

// The files of the seed's tables 593 and 594.
const (
	cpufreq = "/sys/devices/system/cpu/cpu0/cpufreq/"
	thermal = "/sys/devices/virtual/thermal/thermal_zone3/temp"
	flash   = "/sys/block/mmcblk0/size" // in sectors of 512 bytes
	iface   = "wlan0"
	wlan    = "/sys/class/net/" + iface + "/"
)

// Read takes a sample. A value that cannot be read stays zero: statistics are no reason to fail.
func (s Source) Read() Sample {
	var out Sample
	if b, err := s.read("/proc/meminfo"); err == nil {
		m := parseMeminfo(b)
		out.MemTotalKiB, out.MemAvailableKiB = m["MemTotal"], m["MemAvailable"]
	}
	if f := strings.Fields(s.text("/proc/self/statm")); len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			out.SelfKiB = pages * int64(os.Getpagesize()) >> 10
		}
	}
	out.LoadMilli, out.UptimeMS = s.milli("/proc/loadavg"), s.milli("/proc/uptime")
	var st syscall.Statfs_t
	if s.Statfs != nil && s.Statfs(s.Data, &st) == nil {
		block := int64(st.Bsize)
		out.DiskTotalMiB, out.DiskFreeMiB = int64(st.Blocks)*block>>20, int64(st.Bavail)*block>>20
	}
	out.FlashMiB = s.number(flash) >> 11
	out.CPU = CPU{KHz: s.number(cpufreq + "cpuinfo_cur_freq"), Limit: s.number(cpufreq + "scaling_max_freq"),
		Governor: s.text(cpufreq + "scaling_governor"), SetSpeed: s.text(cpufreq + "scaling_setspeed"), MilliC: s.number(thermal)}
	if c := out.CPU.MilliC; -1000 < c && c < 1000 { // some kernels write whole degrees
		out.CPU.MilliC = 1000 * c
	}
	if out.CPU.SetSpeed == "<unsupported>" {
		out.CPU.SetSpeed = ""
	}
	out.Wifi = s.wifi()
	return out
}

func (s Source) wifi() (w Wifi) {
	if w.MAC = s.text(wlan + "address"); w.MAC == "00:00:00:00:00:00" {
		w.MAC = ""
	}
	_, err := s.read(wlan + "statistics/rx_bytes")
	if w.Present = w.MAC != "" || err == nil; !w.Present {
		return w
	}
	const of = wlan + "statistics/"
	w.RxBytes, w.TxBytes, w.RxErrors, w.TxErrors = s.number(of+"rx_bytes"), s.number(of+"tx_bytes"), s.number(of+"rx_errors"), s.number(of+"tx_errors")
	w.Up = s.text(wlan+"operstate") == "up"
	if s.Network != nil {
		ssid, ip := s.Network(iface)
		if w.SSID = ssid; ip.IsValid() {
			w.IP = ip.String()
		}
	}
	return w
}

// Process is one of the robot's programs.
type Process struct {
	Name    string
	PID     int
	CPU     int64 // time on processors, in milliseconds, since its start
	KiB     int64 // resident memory
	Threads int64
}

// ticks is the unit of times in /proc: USER_HZ is 100 on every architecture of Linux that Go knows.
const ticks = 100

// Processes returns the robot's programs: those of known, by name and number, and, below a root that has a proc, the original's and ours (vic-, agentd,
// robotd).
func (s Source) Processes(known map[string]int) (out []Process) {
	all := map[int]string{}
	for name, pid := range known {
		all[pid] = name
	}
	if s.ReadDir != nil {
		names, _ := s.ReadDir("/proc") // a simulated robot has none
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if comm := s.text("/proc/" + name + "/comm"); comm == "agentd" || comm == "robotd" || strings.HasPrefix(comm, "vic-") {
					all[pid] = comm
				}
			}
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if p, ok := parseStat(s.text("/proc/" + strconv.Itoa(pid) + "/stat")); ok {
			p.Name, p.PID = all[pid], pid
			out = append(out, p)
		}
	}
	return out
}

// Load is a program's share of one processor since it was measured before, in thousandths; -1 at the first time.
type Load struct {
	Process
	Permille int64
}

// Meter turns times on processors into shares. The zero value has measured nothing.
type Meter struct {
	before map[int]int64 // by process number
	at     time.Time
}

// Measure returns the shares from the measurement before until now.
func (m *Meter) Measure(all []Process, now time.Time) (out []Load) {
	took, before := now.Sub(m.at).Milliseconds(), m.before
	m.before, m.at = map[int]int64{}, now
	for _, p := range all {
		l := Load{p, -1}
		if was, ok := before[p.PID]; ok && took > 0 {
			l.Permille = max(0, p.CPU-was) * 1000 / took
		}
		m.before[p.PID] = p.CPU
		out = append(out, l)
	}
	return out
}

// parseStat reads /proc/<pid>/stat: after the name in brackets, which may hold anything, come state and then numbers (proc_pid_stat(5)).
func parseStat(text string) (p Process, ok bool) {
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const utime, stime, threads, rss = 11, 12, 17, 21
	if len(f) <= rss {
		return p, false
	}
	var n [rss + 1]int64
	for _, i := range []int{utime, stime, threads, rss} {
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil || n[i] < 0 || n[i] > 1<<50 {
			return p, false
		}
	}
	return Process{CPU: (n[utime] + n[stime]) * 1000 / ticks, KiB: n[rss] * int64(os.Getpagesize()) >> 10, Threads: n[threads]}, true
}

func (s Source) read(name string) ([]byte, error) {
	if s.ReadFile == nil {
		return nil, fs.ErrNotExist
	}
	return s.ReadFile(name)
}

// text returns a file's content without the blanks around it; "" if there is none.
func (s Source) text(name string) string {
	b, err := s.read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns the whole number in a file; 0 if there is none.
func (s Source) number(name string) int64 {
	n, err := strconv.ParseInt(s.text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// milli returns the first number in a file in thousandths; 0 if there is none.
func (s Source) milli(name string) int64 {
	one, _, _ := strings.Cut(s.text(name), " ")
	if f, err := strconv.ParseFloat(one, 64); err == nil && f >= 0 && f < 1e12 {
		return int64(f * 1000)
	}
	return 0
}

// parseMeminfo reads lines such as "MemTotal:  16384256 kB"; others are passed over.
func parseMeminfo(b []byte) map[string]int64 {
	out := map[string]int64{}
	for line := range bytes.Lines(b) {
		key, rest, ok := strings.Cut(string(line), ":")
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil && n >= 0 {
			out[key] = n
		}
	}
	return out
}
