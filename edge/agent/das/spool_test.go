package das

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
)

func line(boot string, seq uint64) string {
	e := events.Event{Seq: seq, Level: events.Info, RobotID: testThing.Serial(), BootID: boot, Name: "test.event"}
	return string(events.AppendLine(nil, &e)) + "\n"
}

func nothing(string) {}

func TestRecover(t *testing.T) {
	conf := DefaultFileConfig()
	seg := func(num int) string { return conf.StoragePath + "/" + segName(uint64(num)) }
	one := line("b1", 1)
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  []string // boot/seq that are still to be sent
		next  uint64   // for boot b1
		torn  uint64
	}{
		{"nothing", nil, nil, 1, 0},
		{"several segments and boots", map[string]string{seg(3): line("b0", 7), seg(4): line("b1", 1) + line("b1", 2)}, []string{"b0/7", "b1/1", "b1/2"}, 3, 0},
		{"torn last line", map[string]string{seg(1): one + line("b1", 2)[:40]}, []string{"b1/1"}, 2, 1},
		{"damaged line in the middle", map[string]string{seg(1): one + "\x00\x00\n" + line("b1", 3)}, []string{"b1/1", "b1/3"}, 4, 1},
		{"another robot's line", map[string]string{seg(1): one + strings.Replace(line("b1", 2), "00e20100", "00e20101", 1)}, []string{"b1/1"}, 2, 1},
		{"numbers out of order", map[string]string{seg(1): line("b1", 5) + line("b1", 4)}, []string{"b1/5", "b1/4"}, 6, 0},
		{"head in the middle", map[string]string{seg(1): one + line("b1", 2),
			conf.StoragePath + "/" + stateName: fmt.Sprintf(`{"v":1,"boot_id":"b1","next_seq":9,"segment":1,"offset":%d}`, len(one))}, []string{"b1/2"}, 9, 0},
		{"head beyond a file that a power cut shortened", map[string]string{seg(1): one, conf.StoragePath + "/" + stateName: `{"v":1,"boot_id":"b1","next_seq":9,"segment":1,"offset":99999}`}, nil, 9, 0},
		{"state of another boot", map[string]string{conf.StoragePath + "/" + stateName: `{"v":1,"boot_id":"b0","next_seq":9,"segment":1,"offset":0}`}, nil, 1, 0},
		{"sent segment that was not yet removed", map[string]string{seg(1): one, conf.StoragePath + "/" + stateName: `{"v":1,"boot_id":"b1","next_seq":2,"segment":2,"offset":0}`}, nil, 2, 0},
		{"damaged state", map[string]string{seg(1): one, conf.StoragePath + "/" + stateName: `{"v":1,"boo`}, []string{"b1/1"}, 5000, 0},
		{"interrupted move", map[string]string{seg(1): one, conf.BackupPath + "/" + segName(1): one}, []string{"b1/1"}, 2, 0},
		{"files that are not ours", map[string]string{conf.StoragePath + "/das.log": "[", conf.StoragePath + "/das-1.ndjson": one, seg(1) + ".kennel-tmp": "x"}, nil, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := testRoot(t)
			for name, body := range tc.files {
				writeFile(t, root, name, body)
			}
			s, err := openSpool(root, conf, "b1", testThing.Serial(), 5000, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if got := pending(t, s); !slices.Equal(got, tc.want) || s.nextSeq() != tc.next || s.torn != tc.torn {
				t.Errorf("got %v, next %d, torn %d; want %v, %d, %d", got, s.nextSeq(), s.torn, tc.want, tc.next, tc.torn)
			}
			if n := s.stats().events; n != uint64(len(tc.want)) {
				t.Errorf("counts %d events; want %d", n, len(tc.want))
			}
			// It keeps working, and a new open finds the same events.
			if _, err := s.append([]byte(line("b1", tc.next)), 1, tc.next); err != nil {
				t.Fatal(err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if s, err = openSpool(root, conf, "b1", testThing.Serial(), 5000, nothing); err != nil {
				t.Fatal(err)
			}
			if got, want := pending(t, s), append(tc.want, fmt.Sprint("b1/", tc.next)); !slices.Equal(got, want) {
				t.Errorf("after an append and a restart %v; want %v", got, want)
			}
		})
	}
}

// pending reads all that is to be sent, as the uploader would.
func pending(t testing.TB, s *spool) (out []string) {
	t.Helper()
	var at place
	for {
		c, ok, err := s.read(at, 100, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		if c.end.compare(at) <= 0 {
			t.Fatalf("read at %v ends at %v", at, c.end)
		}
		at = c.end
		for _, seq := range c.seqs {
			out = append(out, fmt.Sprint(c.bootID, "/", seq))
		}
	}
}

// A disk that refuses a write leaves no half line in the middle of a file.
func TestFailedWrite(t *testing.T) {
	root := testRoot(t)
	s, err := openSpool(root, DefaultFileConfig(), "b1", testThing.Serial(), 1, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.append([]byte(line("b1", 1)), 1, 1); err != nil {
		t.Fatal(err)
	}
	whole := s.active
	broken, err := root.Open(s.pathOf(s.segs[0])) // read only: every write fails
	if err != nil {
		t.Fatal(err)
	}
	s.active = broken
	if _, err := s.append([]byte(line("b1", 2)), 1, 2); err == nil {
		t.Fatal("the write did not fail")
	}
	_ = broken.Close() // read only
	s.active = whole
	if _, err := whole.WriteString(line("b1", 2)[:30]); err != nil { // what a full disk took of it
		t.Fatal(err)
	}
	if _, err := s.append([]byte(line("b1", 2)), 1, 2); err != nil {
		t.Fatal(err)
	}
	if got, want := pending(t, s), []string{"b1/1", "b1/2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFrugal: between writes no file is open, and a segment continues where it was left, also after a failed write or without its file.
func TestFrugal(t *testing.T) {
	root := testRoot(t)
	s, err := openSpool(root, DefaultFileConfig(), "b1", testThing.Serial(), 1, nothing)
	if err != nil {
		t.Fatal(err)
	}
	s.frugal = true
	var want []string
	write := func() {
		t.Helper()
		n := s.nextSeq()
		if _, err := s.append([]byte(line("b1", n)), 1, n); err != nil {
			t.Fatal(err)
		}
		if err := s.sync(); err != nil {
			t.Fatal(err)
		}
		if s.active != nil || !s.parked {
			t.Fatalf("after event %d: active %v, parked %v", n, s.active, s.parked)
		}
		want = append(want, fmt.Sprint("b1/", n))
	}
	for range 3 {
		write()
	}
	f, err := root.OpenFile(s.pathOf(s.segs[0]), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("half a li") // a write that the disk refused
	_ = f.Close()
	write()
	if got := pending(t, s); len(s.segs) != 1 || !slices.Equal(got, want) {
		t.Errorf("%d segments with %v, want one with %v", len(s.segs), got, want)
	}
	if err := s.advance(s.endPlace()); err != nil || len(s.segs) != 1 {
		t.Errorf("all sent: %d segments, %v; want the one that is written to", len(s.segs), err)
	}
	if err := root.Remove(s.pathOf(s.segs[0])); err != nil {
		t.Fatal(err)
	}
	want = nil
	write()
	if got := pending(t, s); !slices.Equal(got, want) {
		t.Errorf("after the file was removed %v, want %v", got, want)
	}
	if err := s.close(); err != nil || s.parked {
		t.Errorf("close: %v, parked %v", err, s.parked)
	}
}

func FuzzRecover(f *testing.F) {
	f.Add([]byte(line("b1", 1)+line("b1", 2)), []byte(`{"v":1,"boot_id":"b1","next_seq":3,"segment":1,"offset":5}`))
	f.Add([]byte("\n\n{}\n"+line("b2", 1)[:20]), []byte(`{"v":1,"offset":-1}`))
	f.Add([]byte(nil), []byte(`{"v":1,"boot_id":"b1","next_seq":18446744073709551615,"segment":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, seg, state []byte) {
		root, conf := testRoot(t), DefaultFileConfig()
		writeFile(t, root, conf.StoragePath+"/"+segName(1), string(seg))
		writeFile(t, root, conf.StoragePath+"/"+stateName, string(state))
		s, err := openSpool(root, conf, "b1", testThing.Serial(), 77, nothing)
		if err != nil {
			t.Fatal(err) // whatever the file holds, the robot keeps working
		}
		before := pending(t, s)
		next := s.nextSeq()
		if slices.Contains(before, fmt.Sprint("b1/", next)) || next < 1 || next > events.MaxSeq {
			t.Fatalf("next %d, pending %v", next, before)
		}
		if _, err := s.append([]byte(line("b1", next)), 1, next); err != nil {
			t.Fatal(err)
		}
		if got, want := pending(t, s), append(before, fmt.Sprint("b1/", next)); !slices.Equal(got, want) {
			t.Fatalf("after an append %v; want %v", got, want)
		}
	})
}

func FuzzParseFileConfig(f *testing.F) {
	f.Add([]byte(`{"dasConfig":{"storage_path":"/run/dasLogs","storage_quota":5000000 /* bytes */}}`))
	f.Add([]byte(`{"backup_path":"../../etc","file_threshold_size":1e6}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseFileConfig(b)
		if err != nil {
			return
		}
		if c.StoragePath == "" || strings.HasPrefix(c.StoragePath, "/") || strings.Contains("/"+c.StoragePath+"/", "/../") ||
			c.StoragePath == c.BackupPath ||
			c.StorageQuota < 2*c.FileThresholdSize || c.FileThresholdSize < 1024 {
			t.Fatalf("%q gives %+v", b, c)
		}
	})
}

func TestParseFileConfig(t *testing.T) {
	d := DefaultFileConfig()
	full := d
	full.StoragePath, full.StorageQuota, full.FileThresholdSize, full.BackupPath, full.BackupQuota, full.URL = "run/das", 9000000, 4000000, "", 0, "https://sqs.example"
	for _, tc := range []struct {
		name, in string
		want     FileConfig
		says     string
	}{
		{"empty", `{}`, d, ""},
		{"original's form", `{"dasConfig":{"url":"https://sqs.example","file_threshold_size":4000000,"flush_interval":600,"storage_path":"/run/das","storage_quota":9000000,
			"backup_path":"","backup_quota":0,"persistent_globals_path":""}}`, full, ""},
		{"negative", `{"storage_quota":-1}`, d, "storage_quota is -1"},
		{"threshold", `{"file_threshold_size":4999999}`, d, "at most half"},
		{"root", `{"storage_path":"/.."}`, d, "storage_path"},
		{"one folder", `{"storage_path":"/a","backup_path":"/b/../a"}`, d, "two folders"},
		{"text", `{"storage_quota":"5"}`, d, "storage_quota"},
	} {
		got, err := ParseFileConfig([]byte(tc.in))
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v; want %q", tc.name, err, tc.says)
			}
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
	root := testRoot(t)
	writeFile(t, root, ConfigFile, "{\n\"storage_quota\": }")
	if c, err := LoadFileConfig(root); err == nil || c != d || !strings.Contains(err.Error(), ConfigFile) {
		t.Errorf("damaged file: %+v, %v; want the defaults and an error that names it", c, err)
	}
}

// Whatever the cloud answers, in any order, every event is either acknowledged or set aside, and nothing blocks.
func FuzzAcks(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{255, 2, 2, 2, 9, 17, 33})
	f.Fuzz(func(t *testing.T, answers []byte) {
		answers = answers[:min(len(answers), 64)] // then the cloud behaves
		root := testRoot(t)
		m := newManager(t, root, "b1", func(c *Config) { c.BatchEvents = 3; c.FlushInterval = time.Nanosecond })
		var sent []events.Batch
		u := newUploader(m, func(_ context.Context, _ string, payload []byte) error {
			b, err := events.DecodeBatch(payload)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, b)
			return nil
		})
		emit(t, m, "a", "b", "c", "d", "e", "f", "g", "h")
		if err := m.write(true); err != nil {
			t.Fatal(err)
		}
		outcome := map[uint64]int{}
		for i := range 200 {
			if err := u.send(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.paused, u.wake = time.Time{}, time.Time{}
			if m.Stats().Events == 0 {
				break
			}
			how := byte(0)
			if i < len(answers) {
				how = answers[i]
			}
			if len(sent) == 0 {
				t.Fatal("events wait, but nothing was sent")
			}
			b := sent[int(how>>3)%len(sent)]
			a := ack.Ack{V: 1, Batch: b.Batch, Status: ack.Stored}
			switch how & 7 {
			case 1:
				a.Batch = "another's"
			case 2:
				a.Status, a.Bad = ack.Refused, []uint64{b.First}
			case 3:
				a.Status, a.Bad = ack.Refused, []uint64{999, b.Last, b.Last}
			case 4:
				a.Status = ack.Refused
			case 5:
				a.Status, a.Bad = ack.Refused, []uint64{12345}
			case 6:
				a.Status = ack.RetryAfter
			case 7:
				a.Status = "unheard of"
			}
			if a.Status == ack.Stored && a.Batch == b.Batch {
				for _, e := range b.Events {
					outcome[e.Seq]++
				}
			}
			if err := u.acked(a, time.Now()); err != nil {
				t.Fatal(err)
			}
			if how == 0 { // the cloud answers the oldest that waits
				for _, f := range u.flights {
					for _, seq := range f.seqs {
						outcome[seq]++
					}
					if err := u.acked(ack.Ack{Batch: f.id, Status: ack.Stored}, time.Now()); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
		}
		st := m.Stats()
		if st.Events != 0 {
			t.Fatalf("%+v: events are stuck", st)
		}
		if uint64(len(outcome))+st.Quarantined < 8 {
			t.Fatalf("%d acknowledged, %d in quarantine, of 8", len(outcome), st.Quarantined)
		}
	})
}
