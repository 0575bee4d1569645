package housetest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Told is a run of events that a robot was told are stored.
type Told struct {
	Thing, Boot string
	First, Last int64
}

var toldLine = regexp.MustCompile(`msg="events stored".* thing=(\S+).* boot=(\S+) first=(\d+) last=(\d+) count=(\d+)`)

// Tally counts the batches that robots were told are stored. A log is read on from where it ended the last time.
type Tally struct {
	ends    map[uint64]int64 // by inode, which a log keeps when it is set aside for the next
	batches int
}

// Count reads what logs have got since the last time, and returns the number of batches so far.
func (c *Tally) Count(t *testing.T, files []string) int {
	t.Helper()
	if c.ends == nil {
		c.ends = map[uint64]int64{}
	}
	for _, f := range files {
		c.batches += len(toldIn(t, f, c.ends))
	}
	return c.batches
}

// toldIn reads the log of one robot or of many: its whole lines, from where it ended according to ends on.
func toldIn(t *testing.T, file string, ends map[uint64]int64) []Told {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	inode := fi.Sys().(*syscall.Stat_t).Ino
	from := ends[inode]
	if from > fi.Size() { // another file
		from = 0
	}
	b, err := io.ReadAll(io.NewSectionReader(f, from, math.MaxInt64-from))
	if err != nil {
		t.Fatal(err)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	ends[inode] = from + int64(len(b))
	var out []Told
	for line := range bytes.Lines(b) {
		if !bytes.Contains(line, []byte("events stored")) {
			continue // nearly all; the expression is slow
		}
		m := toldLine.FindStringSubmatch(string(line))
		if m == nil {
			continue
		}
		first, _ := strconv.ParseInt(m[3], 10, 64)
		last, _ := strconv.ParseInt(m[4], 10, 64)
		if m[5] != strconv.FormatInt(last-first+1, 10) {
			t.Errorf("%s: %s: a batch with gaps: some of its events were refused", file, m[0])
		}
		out = append(out, Told{m[1], m[2], first, last})
	}
	return out
}

// AllTold reads whole logs.
func AllTold(t *testing.T, files []string) (out []Told) {
	t.Helper()
	for _, f := range files {
		out = append(out, toldIn(t, f, map[uint64]int64{})...)
	}
	return out
}

// AgentLogs lists the robots' own logs, which say what they were told.
func (h *House) AgentLogs(things []string) (files []string) {
	for _, id := range things {
		of, _ := filepath.Glob(filepath.Join(h.RobotRoot(id), logDir, "agentd.log*"))
		files = append(files, of...)
	}
	return files
}

// StoredSeqs reads how often each event of a thing's boot is stored.
func StoredSeqs(t *testing.T, c *pgx.Conn) map[string]map[int64]int {
	t.Helper()
	rows, err := c.Query(t.Context(), `select thing || ' ' || boot_id, seq, count(*) from das_event group by 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[int64]int{}
	for rows.Next() {
		var key string
		var seq int64
		var n int
		if err := rows.Scan(&key, &seq, &n); err != nil {
			t.Fatal(err)
		}
		if out[key] == nil {
			out[key] = map[int64]int{}
		}
		out[key][seq] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Judge compares what robots were told with what is stored and returns what is wrong.
func Judge(promised []Told, stored map[string]map[int64]int) (lost, double []string, events int) {
	for _, p := range promised {
		for seq := p.First; seq <= p.Last; seq++ {
			events++
			if n := stored[p.Thing+" "+p.Boot][seq]; n == 0 {
				lost = append(lost, fmt.Sprintf("%s boot %s seq %d", p.Thing, p.Boot, seq))
			}
		}
	}
	for key, seqs := range stored {
		for seq, n := range seqs {
			if n > 1 {
				double = append(double, fmt.Sprintf("%s seq %d: %d times", key, seq, n))
			}
		}
	}
	return lost, double, events
}
