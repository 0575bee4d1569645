package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// Report is one run.
type Report struct {
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	Machine Machine   `json:"machine"`
	Results []Result  `json:"results"`
	Failed  []Failure `json:"failed,omitempty"`
}

// Failure is a bench that gave an error.
type Failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// Machine is where the numbers come from.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory float64 `json:"memory_gib"`
	Kernel string  `json:"kernel"`
	Go     string  `json:"go"`
	Load   float64 `json:"load"` // of the last minute, when the run began: what else the machine had to do
}

// ThisMachine describes this one; what the kernel does not say is empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOARCH}
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

func (m Machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = "processor unknown"
	}
	return fmt.Sprintf("%s, %d cores, %.0f GiB, Linux %s, %s, load %.2f", cpu, m.Cores, m.Memory, m.Kernel, m.Go, m.Load)
}

// Missed lists the results below their bound.
func (r *Report) Missed() []Result {
	var out []Result
	for _, x := range r.Results {
		if x.Missed() {
			out = append(out, x)
		}
	}
	return out
}

// Write prints the report, as JSON or as a table for people.
func (r *Report) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.table(w)
}

// Save writes the report as JSON to file, whose folder is made if it is missing.
func (r *Report) Save(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func (r *Report) table(out io.Writer) error {
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
