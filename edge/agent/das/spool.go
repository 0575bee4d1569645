package das

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
)

// maxSegments bounds the number of files in storage: an agent that keeps restarting leaves many small ones.
const maxSegments = 256

// place is a position in the spool: a byte of a segment. Places are ordered; all events before the head are done.
type place struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"`
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Offset, q.Offset))
}

// state holds the facts that must outlive the segments. It is written before a segment is removed.
type state struct {
	V       int    `json:"v"`
	BootID  string `json:"boot_id"`
	NextSeq uint64 `json:"next_seq"`
	Dropped uint64 `json:"dropped"` // since boot
	place          // head
}

type segment struct {
	num     uint64
	backup  bool  // is in backup_path
	size    int64 // bytes of whole lines
	pending int   // events at or after the head
}

// spool is the segments on disk. Safe for concurrent use; every method may wait for the disk.
type spool struct {
	root   *os.Root
	conf   FileConfig
	bootID string
	serial string
	step   func(string) // called between any two changes on disk; tests die there
	frugal bool         // the active segment is parked after each sync

	mu       sync.Mutex
	segs     []*segment // ascending numbers
	active   *os.File   // of the last segment; nil: the next append makes one
	parked   bool       // the last segment is active, its file is closed until the next append
	num      uint64     // number of the next segment
	head     place
	next     uint64 // the next append's first seq is at least this
	dropped  uint64 // events that the quota removed, since boot
	torn     uint64 // lines that were no events, since start
	purges   int    // how often all was thrown away
	unsynced bool   // the active segment has lines that are not durable
	dirty    bool   // the active segment has bytes beyond its size, of a write that failed
}

const stateName = "das-state.json"

func (s *spool) dirOf(backup bool) string {
	if backup {
		return s.conf.BackupPath
	}
	return s.conf.StoragePath
}

func segName(num uint64) string { return fmt.Sprintf("das-%016d.ndjson", num) }

func (s *spool) pathOf(seg *segment) string { return path.Join(s.dirOf(seg.backup), segName(seg.num)) }

// openSpool recovers the spool from disk. fallback is the next seq if the state file is damaged: it must be above any seq used before.
func openSpool(root *os.Root, conf FileConfig, bootID, serial string, fallback uint64, step func(string)) (*spool, error) {
	s := &spool{root: root, conf: conf, bootID: bootID, serial: serial, step: step, next: 1}
	if err := root.MkdirAll(conf.StoragePath, 0o755); err != nil {
		return nil, fmt.Errorf("event spool: %w", err)
	}
	for _, dir := range []string{conf.StoragePath, conf.BackupPath} {
		if dir == "" {
			continue
		}
		if err := robotfs.CleanTemp(root, dir); err != nil {
			return nil, fmt.Errorf("event spool: %w", err)
		}
	}
	if err := s.readState(fallback); err != nil {
		return nil, fmt.Errorf("event spool: %w", err)
	}
	if err := s.findSegments(); err != nil {
		return nil, fmt.Errorf("event spool: %w", err)
	}
	for _, seg := range s.segs {
		if err := s.scan(seg); err != nil {
			return nil, fmt.Errorf("event spool: %s: %w", s.pathOf(seg), err)
		}
	}
	return s, nil
}

func (s *spool) readState(fallback uint64) error {
	b, err := robotfs.ReadFile(s.root, path.Join(s.conf.StoragePath, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var st state
	if json.Unmarshal(b, &st) != nil || st.V != 1 || st.Offset < 0 || st.NextSeq > events.MaxSeq || st.Segment > 1<<53 {
		s.next = max(fallback, 1) // a number is never used twice; events sent before are sent again, and the cloud recognises them
		return nil
	}
	s.head = st.place
	if st.BootID == s.bootID {
		s.next, s.dropped = max(st.NextSeq, 1), st.Dropped
	}
	return nil
}

// findSegments lists both folders, removes finished segments, and completes interrupted moves.
func (s *spool) findSegments() error {
	s.num = s.head.Segment + 1
	byNum := map[uint64]*segment{}
	for _, backup := range []bool{true, false} {
		dir := s.dirOf(backup)
		if dir == "" {
			continue
		}
		d, err := s.root.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		names, err := d.Readdirnames(-1)
		_ = d.Close() // read only
		if err != nil {
			return err
		}
		for _, name := range names {
			digits, ok := strings.CutSuffix(name, ".ndjson")
			num, err := strconv.ParseUint(strings.TrimPrefix(digits, "das-"), 10, 53)
			if !ok || err != nil || name != segName(num) {
				continue // not ours
			}
			// A segment in both folders was being moved: the copy in backup is whole, because its rename was the last step.
			if num < s.head.Segment || byNum[num] != nil {
				if err := s.root.Remove(path.Join(dir, name)); err != nil {
					return err
				}
				continue
			}
			byNum[num] = &segment{num: num, backup: backup}
			s.num = max(s.num, num+1)
		}
	}
	for _, seg := range byNum {
		s.segs = append(s.segs, seg)
	}
	slices.SortFunc(s.segs, func(a, b *segment) int { return cmp.Compare(a.num, b.num) })
	return nil
}

// scan counts a segment's events, learns the highest seq of this boot, and cuts off a torn last line.
func (s *spool) scan(seg *segment) error {
	f, err := s.root.OpenFile(s.pathOf(seg), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // what was changed is synced
	torn, err := s.lines(f, 0, func(at, end int64, line string) bool {
		seg.size = end
		e, ok := s.parse(line)
		if !ok {
			s.torn++
			return true
		}
		if e.BootID == s.bootID && e.Seq < events.MaxSeq {
			s.next = max(s.next, e.Seq+1)
		}
		if seg.num > s.head.Segment || at >= s.head.Offset {
			seg.pending++
		}
		return true
	})
	if err != nil || torn == 0 {
		return err
	}
	s.torn++
	if err := f.Truncate(seg.size); err != nil {
		return err
	}
	return f.Sync()
}

// lines calls fn for each whole line from offset on, with its begin and the begin of the next one, until fn returns false. A line too long
// for an event is passed as "", so that a damaged file costs no memory. It returns the number of bytes of an unfinished last line.
func (s *spool) lines(f io.ReadSeeker, offset int64, fn func(at, end int64, line string) bool) (torn int64, err error) {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	var line []byte
	for at, end := offset, offset; ; {
		part, err := r.ReadSlice('\n')
		end += int64(len(part))
		if end-at <= events.MaxLine+1 {
			line = append(line, part...)
		} else {
			line = line[:0]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return end - at, nil
		case err != nil:
			return 0, err
		}
		if !fn(at, end, string(bytes.TrimSuffix(line, []byte{'\n'}))) {
			return 0, nil
		}
		at, line = end, line[:0]
	}
}

// parse reads one line; ok only if the cloud would take it.
func (s *spool) parse(line string) (events.Event, bool) {
	e, err := events.ParseLine(line)
	if err != nil || e.Validate() != nil || e.RobotID != s.serial {
		return events.Event{}, false
	}
	return e, true
}

// append writes whole lines, n events of which the last has seq last, to the active segment. If it fails, nothing of them counts as
// written. dropped is how many old events had to go for them.
func (s *spool) append(lines []byte, n int, last uint64) (dropped int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked {
		if err := s.unpark(); err != nil {
			return 0, err
		}
	}
	if s.active == nil {
		if dropped, err = s.makeRoom(); err != nil {
			return dropped, err
		}
		if err := s.begin(); err != nil {
			return dropped, err
		}
	}
	seg := s.segs[len(s.segs)-1]
	s.step("append")
	if s.dirty { // the torn line of a failed write must not stay in the middle of the file
		if err := s.active.Truncate(seg.size); err != nil {
			return dropped, fmt.Errorf("repair event file: %w", err)
		}
		if _, err := s.active.Seek(seg.size, io.SeekStart); err != nil {
			return dropped, fmt.Errorf("repair event file: %w", err)
		}
		s.dirty = false
	}
	if _, err := s.active.Write(lines); err != nil {
		s.dirty = true
		return dropped, fmt.Errorf("write events: %w", err)
	}
	seg.size += int64(len(lines))
	seg.pending += n
	s.next = max(s.next, last+1)
	s.unsynced = true
	s.step("appended")
	if seg.size >= s.conf.FileThresholdSize && s.syncLocked() == nil { // else the next sync reports the error
		s.end()
	}
	return dropped, nil
}

func (s *spool) begin() error {
	seg := &segment{num: s.num}
	f, err := s.root.OpenFile(s.pathOf(seg), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("create event file: %w", err)
	}
	s.num++ // also if the next steps fail: the name is taken
	if err := robotfs.SyncDir(s.root, s.conf.StoragePath); err != nil {
		_ = f.Close() // empty
		return fmt.Errorf("create event file: %w", err)
	}
	s.segs, s.active = append(s.segs, seg), f
	s.step("begun")
	return nil
}

// end closes the active segment, which is synced or no longer needed; the next append begins another.
func (s *spool) end() {
	if s.active != nil {
		_ = s.active.Close() // nothing is buffered
	}
	s.active, s.parked, s.unsynced, s.dirty = nil, false, false, false
}

// park closes the file of the active segment, which is synced, and keeps the segment.
func (s *spool) park() {
	_ = s.active.Close() // nothing is buffered
	s.active, s.parked = nil, true
}

// unpark opens the active segment again; if its file was removed, the next append begins another.
func (s *spool) unpark() error {
	f, err := s.root.OpenFile(s.pathOf(s.segs[len(s.segs)-1]), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		s.end()
		return nil
	}
	if err != nil {
		return fmt.Errorf("reopen event file: %w", err)
	}
	s.active, s.parked, s.dirty = f, false, true // new lines are appended after the valid ones
	return nil
}

// writing reports whether lines will be added to the last segment.
func (s *spool) writing() bool { return s.active != nil || s.parked }

// sync makes all that was appended durable.
func (s *spool) sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncLocked()
}

func (s *spool) syncLocked() error {
	if !s.unsynced || s.active == nil {
		return nil
	}
	s.step("sync")
	if err := s.active.Sync(); err != nil {
		return fmt.Errorf("sync events: %w", err)
	}
	s.unsynced = false
	s.step("synced")
	if s.frugal && !s.dirty {
		s.park()
	}
	return nil
}

// makeRoom moves the oldest segments to backup while storage has no room for one more, and drops the oldest of all where backup has none
// either (part of VEC-DAS-05). It returns how many events were dropped.
func (s *spool) makeRoom() (dropped int, err error) {
	for {
		var stored, backed int64
		var oldest *segment
		files := 0
		for _, seg := range s.segs {
			if seg.backup {
				backed += seg.size
				continue
			}
			stored += seg.size
			files++
			if oldest == nil {
				oldest = seg
			}
		}
		if oldest == nil || (stored+s.conf.FileThresholdSize <= s.conf.StorageQuota && files < maxSegments) {
			return dropped, nil
		}
		// A backup that cannot be written is as good as full: better to lose the oldest than the newest.
		if s.conf.BackupPath == "" || oldest.size > s.conf.BackupQuota-backed || s.moveToBackup(oldest) != nil {
			victim := s.segs[0]
			n := victim.pending
			s.dropped += uint64(n)
			if err := s.advanceLocked(place{victim.num + 1, 0}); err != nil {
				return dropped, err
			}
			dropped += n
		}
	}
}

// moveToBackup copies, because the folders may be on different file systems.
func (s *spool) moveToBackup(seg *segment) error {
	from := s.pathOf(seg)
	b, err := robotfs.ReadFile(s.root, from)
	if err != nil {
		return fmt.Errorf("back up events: %w", err)
	}
	if err := robotfs.WriteFile(s.root, path.Join(s.conf.BackupPath, segName(seg.num)), b[:min(seg.size, int64(len(b)))], 0o644); err != nil {
		return fmt.Errorf("back up events: %w", err)
	}
	seg.backup = true
	s.step("copied")
	if err := s.root.Remove(from); err != nil {
		return fmt.Errorf("back up events: %w", err)
	}
	s.step("moved")
	return nil
}

// backup moves everything to backup_path, as far as its quota goes.
func (s *spool) backup() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing() {
		if err := s.syncLocked(); err != nil {
			return err
		}
		s.end()
	}
	var backed int64
	for _, seg := range s.segs {
		if seg.backup {
			backed += seg.size
			continue
		}
		if s.conf.BackupPath == "" || backed+seg.size > s.conf.BackupQuota {
			return nil
		}
		if err := s.moveToBackup(seg); err != nil {
			return err
		}
		backed += seg.size
	}
	return nil
}

// advance makes durable that everything before p is done, and removes whole segments.
func (s *spool) advance(p place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advanceLocked(p)
}

func (s *spool) advanceLocked(p place) error {
	if p.compare(s.head) <= 0 {
		return nil // a quota or a purge was faster
	}
	old := s.head
	s.head = p
	if err := s.writeState(); err != nil {
		s.head = old
		return err
	}
	for len(s.segs) > 0 && s.done(s.segs[0]) {
		seg := s.segs[0]
		s.segs = s.segs[1:]
		s.step("remove")
		if err := s.root.Remove(s.pathOf(seg)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove sent events: %w", err)
		}
		s.step("removed")
	}
	return nil
}

// done reports whether nothing of seg is left, and nothing will be added.
func (s *spool) done(seg *segment) bool {
	if seg.num < s.head.Segment {
		return true
	}
	writing := s.writing() && seg == s.segs[len(s.segs)-1]
	return seg.num == s.head.Segment && s.head.Offset >= seg.size && !writing
}

func (s *spool) writeState() error {
	b, err := json.Marshal(state{V: 1, BootID: s.bootID, NextSeq: s.next, Dropped: s.dropped, place: s.head})
	if err != nil {
		return fmt.Errorf("event state: %w", err)
	}
	s.step("state")
	if err := robotfs.WriteFile(s.root, path.Join(s.conf.StoragePath, stateName), b, 0o644); err != nil {
		return fmt.Errorf("event state: %w", err)
	}
	s.step("stated")
	return nil
}

// purge throws all away (VEC-DAS-08) and returns how many events that were.
func (s *spool) purge() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, seg := range s.segs {
		n += seg.pending
	}
	s.end()
	s.purges++
	if len(s.segs) == 0 {
		return 0, nil
	}
	return n, s.advanceLocked(place{s.num, 0})
}

// chunk is a run of events of one boot, out of one segment.
type chunk struct {
	bootID string
	lines  []string
	seqs   []uint64
	start  place
	end    place // after the last line, and after unreadable lines before it
	purges int   // of the spool when this was read
}

// read returns the next events at or after p, at most maxEvents and about maxBytes, and whether there are any. The place after them is
// end, also when there are none.
func (s *spool) read(p place, maxEvents int, maxBytes int) (chunk, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.compare(s.head) < 0 {
		p = s.head
	}
	for _, seg := range s.segs {
		if seg.num < p.Segment || (seg.num == p.Segment && p.Offset >= seg.size) {
			continue
		}
		if seg.num > p.Segment {
			p = place{seg.num, 0}
		}
		c, err := s.readSegment(seg, p, maxEvents, maxBytes)
		if err != nil {
			return chunk{}, false, fmt.Errorf("read events: %s: %w", s.pathOf(seg), err)
		}
		if len(c.lines) > 0 {
			return c, true, nil
		}
		p = c.end // nothing but damaged lines
	}
	return chunk{start: p, end: p, purges: s.purges}, false, nil
}

func (s *spool) readSegment(seg *segment, p place, maxEvents, maxBytes int) (chunk, error) {
	f, err := s.root.Open(s.pathOf(seg))
	if err != nil {
		return chunk{}, err
	}
	defer f.Close() // read only
	c := chunk{start: p, end: p, purges: s.purges}
	size := 0
	_, err = s.lines(f, p.Offset, func(at, end int64, line string) bool {
		if at >= seg.size {
			return false // being written
		}
		e, ok := s.parse(line)
		if ok {
			n := len(c.lines)
			if n == maxEvents || (n > 0 && (size+len(line) > maxBytes || e.BootID != c.bootID || e.Seq <= c.seqs[n-1])) {
				return false
			}
			size += len(line) + 1
			c.bootID, c.lines, c.seqs = e.BootID, append(c.lines, line), append(c.seqs, e.Seq)
		}
		c.end.Offset = end
		return true
	})
	if err == nil && len(c.lines) == 0 {
		c.end.Offset = max(c.end.Offset, seg.size)
	}
	return c, err
}

// finished subtracts n events from those that wait in the segment of p, and returns how many it subtracted: 0 if the segment is gone.
func (s *spool) finished(p place, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segs {
		if seg.num == p.Segment {
			n = min(n, seg.pending)
			seg.pending -= n
			return n
		}
	}
	return 0
}

// spoolStats counts waiting and lost events.
type spoolStats struct {
	events        uint64
	bytes         int64
	dropped, torn uint64
}

func (s *spool) stats() spoolStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := spoolStats{dropped: s.dropped, torn: s.torn}
	for _, seg := range s.segs {
		st.events += uint64(seg.pending)
		st.bytes += seg.size
		if seg.num == s.head.Segment {
			st.bytes -= min(s.head.Offset, seg.size)
		}
	}
	return st
}

// endPlace returns the end of the events that can be read now.
func (s *spool) endPlace() place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segs) == 0 {
		return s.head
	}
	last := s.segs[len(s.segs)-1]
	return place{last.num, last.size}
}

func (s *spool) nextSeq() uint64 { s.mu.Lock(); defer s.mu.Unlock(); return s.next }

func (s *spool) headPlace() (place, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head, s.purges
}

// close syncs and closes the active segment.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writing() {
		return nil
	}
	if err := s.syncLocked(); err != nil {
		return err
	}
	s.end()
	return nil
}
