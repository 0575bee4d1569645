package logfile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/uploads/logfile"
	"kennel/infra/errs"
)

var uploaded = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func tarred(files ...string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o600})
		io.WriteString(w, files[i+1])
	}
	w.Close()
	return out.Bytes()
}

func read(t *testing.T, name string, log []byte, f logfile.Filter, skip, limit int) (logfile.Contents, error) {
	t.Helper()
	return logfile.Read(t.Context(), bytes.NewReader(log), name, uploaded, f, skip, limit, logfile.NewBudget(logfile.MaxUnpacked))
}

func texts(c logfile.Contents) (out []string) {
	for _, l := range c.Lines {
		out = append(out, fmt.Sprintf("%s:%d %s", l.File, l.Number, l.Text))
	}
	return out
}

// bzipped is "one\ntwo\n" by bzip2.
const bzipped = "QlpoOTFBWSZTWacUK3cAAALBgAAQAgGEgCAAIYAMAjj1G4u5IpwoSFOKFbuA"

// TestUnpack: VEC-LOG-02, VEC-LOG-04, VEC-LOG-07: however a log is packed, its lines are the same.
func TestUnpack(t *testing.T) {
	plain := []byte("one\ntwo\n")
	for _, tc := range []struct {
		name  string
		log   []byte
		lines []string
	}{
		{"a.log", plain, []string{"a.log:1 one", "a.log:2 two"}},
		{"a.log.gz", gz(plain), []string{"a.log:1 one", "a.log:2 two"}},
		{"d.tar", tarred("log.txt", "one\ntwo", "dir/ps.txt", "ps\r\n"), []string{"log.txt:1 one", "log.txt:2 two", "dir/ps.txt:1 ps"}},
		{"d.tar.gz", gz(tarred("log.txt", "one\ntwo")), []string{"log.txt:1 one", "log.txt:2 two"}},
		{"d.tgz", gz(tarred("messages.1.gz", string(gz(plain)))), []string{"messages.1:1 one", "messages.1:2 two"}},
		{"two.gz", append(gz([]byte("one\n")), gz([]byte("two\n"))...), []string{"two:1 one", "two:2 two"}},
		{"a.bz2", mustBase64(bzipped), []string{"a:1 one", "a:2 two"}},
		{"empty", nil, nil},
		{"empty.gz", gz(nil), nil},
		{"a.bin", []byte("MDMP\x93\xa7\x00\x00"), nil},
		{"colours", []byte("\x1b[31mred\x1b[0m \x07bell\xff\n"), []string{"colours:1 red bell\ufffd"}},
	} {
		c, err := read(t, tc.name, tc.log, logfile.Filter{}, 0, 100)
		if got := texts(c); err != nil || c.Problem != "" || !slices.Equal(got, tc.lines) || c.Found != len(tc.lines) {
			t.Errorf("%s: %q, %v, %+v; want %q", tc.name, got, err, c, tc.lines)
		}
	}
}

func mustBase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// TestDamaged: what can be read of a log that broke off is shown, and that it did.
func TestDamaged(t *testing.T) {
	long := []byte(strings.Repeat("a line that repeats\n", 5000))
	whole := gz(long)
	c, err := read(t, "a.gz", whole[:len(whole)-12], logfile.Filter{}, 0, 3)
	if err != nil || len(c.Lines) != 3 || !strings.Contains(c.Problem, "a is damaged: unexpected EOF") {
		t.Errorf("%d lines, %q, %v", len(c.Lines), c.Problem, err)
	}
	c, err = read(t, "a.gz", []byte{0x1f, 0x8b, 9}, logfile.Filter{}, 0, 3)
	if err != nil || !strings.Contains(c.Problem, "a.gz is damaged") {
		t.Errorf("%q, %v", c.Problem, err)
	}
}

// TestBombs: bytes that unpack to very many are refused with a sentence, and soon.
func TestBombs(t *testing.T) {
	zeros := gz(bytes.Repeat([]byte{'a'}, logfile.MaxUnpacked+1)) // 130 kB
	deep := []byte("x")
	for range 6 {
		deep = gz(deep)
	}
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprint(i), "x")
	}
	for name, tc := range map[string]struct {
		log  []byte
		want string
	}{
		"wide":  {zeros, "unpacks to more than 128 MiB"},
		"twice": {gz(zeros), "unpacks to more than 128 MiB"},
		"lines": {gz(bytes.Repeat([]byte("a\n"), 2_000_001)), "more than 2000000 lines"},
		"deep":  {deep, "more than 4 times over"},
		"many":  {gz(tarred(many...)), "more than 1000 files"},
	} {
		if _, err := read(t, name, tc.log, logfile.Filter{}, 0, 10); errs.KindOf(err) != errs.Invalid || !strings.Contains(fmt.Sprint(err), tc.want) || !strings.Contains(err.Error(), "download it instead") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := logfile.Read(ctx, bytes.NewReader(zeros), "a", uploaded, logfile.Filter{}, 0, 1, logfile.NewBudget(1<<20)); err == nil || ctx.Err() == nil {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLines(t *testing.T) {
	log := strings.Join([]string{
		"2026-01-02T10:00:00.5+00:00 Victor vic-engine[12]: Starting",
		"2026-01-02T10:00:01Z Victor daemon.err vic-cloud[13]: no route",
		"  at somewhere",
		"Jan  2 10:00:02 Victor user.warn kernel: hot",
		"01-02 10:00:03.250  1234  5678 E vic-anim: stuck",
		`time=2026-01-02T10:00:04Z level=WARN msg="error in the text"`,
		`{"time":"2026-01-02T10:00:05Z","level":"DEBUG","msg":"x"}`,
		"2026-01-02 10:00:06,123 [ERROR] java.lang: y",
		"Dec 31 23:00:00 Victor kernel: last year",
		"",
	}, "\n")
	all, err := read(t, "m", []byte(log), logfile.Filter{}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	day := func(h, m, s, ms int) time.Time { return time.Date(2026, 1, 2, h, m, s, ms*1e6, time.UTC) }
	for i, want := range []logfile.Line{{At: day(10, 0, 0, 500)}, {At: day(10, 0, 1, 0), Level: "error"}, {At: day(10, 0, 1, 0), Level: "error"}, {At: day(10, 0, 2, 0), Level: "warning"},
		{At: day(10, 0, 3, 250), Level: "error"}, {At: day(10, 0, 4, 0), Level: "warning"}, {At: day(10, 0, 5, 0), Level: "debug"}, {At: day(10, 0, 6, 123), Level: "error"},
		{At: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)}} {
		if got := all.Lines[i]; !got.At.Equal(want.At) || got.Level != want.Level || got.Number != i+1 {
			t.Errorf("line %d %q: %s %q, want %s %q", i+1, got.Text, got.At, got.Level, want.At, want.Level)
		}
	}
	for name, tc := range map[string]struct {
		f    logfile.Filter
		want []int
	}{
		"text":       {logfile.Filter{Text: "ROUTE"}, []int{2}},
		"level":      {logfile.Filter{Level: "error"}, []int{2, 3, 5, 8}},
		"from":       {logfile.Filter{From: day(10, 0, 5, 0)}, []int{7, 8}},
		"to":         {logfile.Filter{From: day(10, 0, 1, 0), To: day(10, 0, 2, 0)}, []int{2, 3}},
		"file":       {logfile.Filter{File: "other"}, nil},
		"everything": {logfile.Filter{Level: "warning", Text: "t", From: day(10, 0, 2, 0), File: "m"}, []int{4, 5, 6}},
	} {
		c, err := read(t, "m", []byte(log), tc.f, 0, 100)
		var got []int
		for _, l := range c.Lines {
			got = append(got, l.Number)
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: lines %v, %v; want %v", name, got, err, tc.want)
		}
	}
	c, err := read(t, "m", []byte(log), logfile.Filter{Level: "error"}, 1, 2)
	if got := texts(c); err != nil || c.Found != 4 || c.More != 3 || len(got) != 2 || c.Lines[0].Number != 3 {
		t.Errorf("second page: %q, %+v, %v", got, c, err)
	}
	long, err := read(t, "l", []byte(strings.Repeat("x", 1<<20)+"\nnext"), logfile.Filter{}, 0, 10)
	if err != nil || len(long.Lines) != 2 || len(long.Lines[0].Text) != 4096 || long.Lines[1].Text != "next" {
		t.Errorf("a long line: %d lines, %v", len(long.Lines), err)
	}
}

// FuzzRead: whatever a robot uploads, reading it ends within its budget, and paging finds each line once.
func FuzzRead(f *testing.F) {
	f.Add([]byte("2026-01-02T10:00:01Z err x: y\nz"), "x", byte(1))
	f.Add(gz(tarred("a", "Jan  2 10:00:02 h user.warn k: z\n", "b.gz", string(gz([]byte("q"))))), "", byte(0))
	f.Add(mustBase64(bzipped), "o", byte(2))
	f.Fuzz(func(t *testing.T, log []byte, text string, skip byte) {
		filter := logfile.Filter{Text: text}
		all, err := logfile.Read(t.Context(), bytes.NewReader(log), "f", uploaded, filter, 0, 1<<20, logfile.NewBudget(1<<20))
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		if all.Found != len(all.Lines) || all.More != 0 {
			t.Fatalf("%d found, %d shown, more %d", all.Found, len(all.Lines), all.More)
		}
		page, err := logfile.Read(t.Context(), bytes.NewReader(log), "f", uploaded, filter, int(skip), 1, logfile.NewBudget(1<<20))
		if err != nil || page.Found != all.Found || int(skip) < all.Found && (len(page.Lines) != 1 || page.Lines[0] != all.Lines[skip]) {
			t.Fatalf("page after %d: %+v, %v", skip, page, err)
		}
	})
}
