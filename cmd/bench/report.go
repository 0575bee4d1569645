package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/bench"
)

// report is one run.
type report struct {
	Started time.Time      `json:"started"`
	Version string         `json:"version"`
	Machine machine        `json:"machine"`
	Results []bench.Result `json:"results"`
	Failed  []failure      `json:"failed,omitempty"`
}

// failure is a benchmark that gave an error.
type failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// readResults reads what the benchmarks of a run have left.
func readResults(file string) (out []bench.Result, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // none came to an end
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var r bench.Result
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, r)
	}
}

// verdict is the error to end with.
func (r *report) verdict(strict bool) error {
	if n := len(r.Failed); n > 0 {
		return fmt.Errorf("%d benchmarks failed, the first: %s: %s", n, r.Failed[0].Name, r.Failed[0].Error)
	}
	if missed := r.missed(); strict && len(missed) > 0 {
		return fmt.Errorf("%d ratios below their bound, the first: %s is %.2f, want %.2f", len(missed), missed[0].Name, missed[0].Ratio, missed[0].Bound)
	}
	return nil
}

// machine is where the numbers come from.
type machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory float64 `json:"memory_gib"`
	Kernel string  `json:"kernel"`
	Go     string  `json:"go"`
	Load   float64 `json:"load"` // of the last minute, when the run began: what else the machine had to do
}

// thisMachine describes this one; what the kernel does not say is empty.
func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOARCH}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil {
		m.Memory = float64(uint64(s.Totalram)*uint64(s.Unit)) / (1 << 30)
		m.Load = float64(s.Loads[0]) / (1 << 16)
	}
	return m
}

func (m machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = "processor unknown"
	}
	return fmt.Sprintf("%s, %d cores, %.0f GiB, Linux %s, %s, load %.2f", cpu, m.Cores, m.Memory, m.Kernel, m.Go, m.Load)
}

// missed lists the results below their bound.
func (r *report) missed() []bench.Result {
	var out []bench.Result
	for _, x := range r.Results {
		if x.Missed() {
			out = append(out, x)
		}
	}
	return out
}

// write prints the report, as JSON or as a table for people.
func (r *report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.table(w)
}

// save writes the report as JSON to file.
func (r *report) save(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func (r *report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s\n%s\n\n", r.Version, r.Started.Format(time.RFC3339), r.Machine)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BENCH\tVALUE\tREFERENCE\tUNIT\tRATIO\tBOUND\t")
	for _, x := range r.Results {
		verdict := ""
		switch {
		case x.Missed():
			verdict = "MISSED"
		case x.Bound > 0:
			verdict = "ok"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Name, number(x.Value), number(x.Reference), x.Unit, ratio(x.Ratio), ratio(x.Bound), verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, x := range r.Results {
		if x.Note != "" {
			fmt.Fprintf(out, "%s: %s\n", x.Name, x.Note)
		}
	}
	for _, x := range r.Results {
		if x.Plot != "" {
			fmt.Fprintf(out, "\n%s\n%s", x.Name, x.Plot)
		}
	}
	for _, f := range r.Failed {
		fmt.Fprintf(out, "\n%s FAILED: %s\n", f.Name, f.Error)
	}
	return nil
}

// number prints three significant digits or whole numbers; "-" for none.
func number(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x >= 100 || x <= -100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func ratio(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
