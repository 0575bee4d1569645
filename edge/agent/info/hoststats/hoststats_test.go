package hoststats

import (
	"os"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	files := map[string]string{
		"/proc/meminfo":    "MemTotal:         500000 kB\nMemFree: x\nnonsense\nMemAvailable:  123456 kB\n",
		"/proc/self/statm": "1000 50 3 4 5 6 7\n",
		"/proc/loadavg":    "0.25 0.10 0.05 1/100 123\n",
	}
	s := Source{
		ReadFile: func(name string) ([]byte, error) {
			if f, ok := files[name]; ok {
				return []byte(f), nil
			}
			return nil, os.ErrNotExist
		},
		Statfs: func(_ string, st *syscall.Statfs_t) error {
			st.Bsize, st.Blocks, st.Bavail = 4096, 512, 256
			return nil
		},
	}
	want := Sample{
		MemTotalKiB: 500000, MemAvailableKiB: 123456, SelfKiB: int64(50 * os.Getpagesize() >> 10), LoadMilli: 250, DiskTotalMiB: 2,
		DiskFreeMiB: 1,
	}
	if got := s.Read(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	clear(files)
	if got := (Source{}).Read(); got != (Sample{}) {
		t.Errorf("nothing to read: %+v", got)
	}
	if got := Host(t.TempDir()).Read(); got.MemTotalKiB == 0 || got.SelfKiB == 0 || got.DiskTotalMiB == 0 {
		t.Errorf("this machine: %+v", got)
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
