// Package hoststats samples memory, load and storage of the robot's computer (VEC-DAS-14). The values come from the files that the original
// read, through functions that a test replaces.
package hoststats

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Sample is one look at the host. Zero fields could not be read.
type Sample struct {
	MemTotalKiB     int64
	MemAvailableKiB int64
	SelfKiB         int64 // resident memory of this process
	LoadMilli       int64 // load average of the last minute, in thousandths
	DiskTotalMiB    int64 // of the file system with the robot's data
	DiskFreeMiB     int64
}

// Source is where a Sample is read from. The zero value reads nothing.
type Source struct {
	ReadFile func(name string) ([]byte, error)
	Statfs   func(path string, st *syscall.Statfs_t) error
	Data     string // folder on the file system to report
}

// Host reads this machine; data is the robot's folder.
func Host(data string) Source {
	return Source{ReadFile: os.ReadFile, Statfs: syscall.Statfs, Data: data}
}

// Read takes a sample. A value that cannot be read stays zero: statistics are no reason to fail.
func (s Source) Read() Sample {
	var out Sample
	if b, err := s.read("/proc/meminfo"); err == nil {
		m := parseMeminfo(b)
		out.MemTotalKiB, out.MemAvailableKiB = m["MemTotal"], m["MemAvailable"]
	}
	if b, err := s.read("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				out.SelfKiB = pages * int64(os.Getpagesize()) >> 10
			}
		}
	}
	if b, err := s.read("/proc/loadavg"); err == nil {
		one, _, _ := strings.Cut(string(b), " ")
		if l, err := strconv.ParseFloat(one, 64); err == nil && l >= 0 && l < 1e9 {
			out.LoadMilli = int64(l * 1000)
		}
	}
	var st syscall.Statfs_t
	if s.Statfs != nil && s.Statfs(s.Data, &st) == nil {
		block := int64(st.Bsize)
		out.DiskTotalMiB, out.DiskFreeMiB = int64(st.Blocks)*block>>20, int64(st.Bavail)*block>>20
	}
	return out
}

func (s Source) read(name string) ([]byte, error) {
	if s.ReadFile == nil {
		return nil, fmt.Errorf("no source for %s", name)
	}
	return s.ReadFile(name)
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
