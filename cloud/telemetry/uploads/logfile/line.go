package logfile

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/infra/api/events"
)

// Levels are those that lines are told apart by, from the least grave on. A line that names none counts as info.
var Levels = []events.Level{events.Debug, events.Info, events.Warning, events.Error}

// words are the levels as the many programs of a robot write them.
var words = map[string]events.Level{
	"trace": events.Debug, "verbose": events.Debug, "debug": events.Debug, "v": events.Debug, "d": events.Debug,
	"info": events.Info, "notice": events.Info, "event": events.Info, "i": events.Info, "n": events.Info,
	"warn": events.Warning, "warning": events.Warning, "w": events.Warning,
	"error": events.Error, "err": events.Error, "crit": events.Error, "critical": events.Error, "alert": events.Error, "emerg": events.Error, "fatal": events.Error, "panic": events.Error, "e": events.Error, "f": events.Error,
}

var (
	named  = regexp.MustCompile(`(?:^|[\s{,])"?level"?\s*[=:]\s*"?([A-Za-z]{4,8})\b`) // slog's and others' level=WARN, "level":"WARN"
	moment = regexp.MustCompile(`^(?:[\[{"]*(?:time|ts|timestamp)"?\s*[=:]\s*)?[\["]?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)`)
	short  = regexp.MustCompile(`^(?:<\d{1,3}>)?((?:[A-Z][a-z]{2} [ \d]\d|\d\d-\d\d) \d\d:\d\d:\d\d(?:\.\d{1,9})?)`) // syslog, logcat: no year
)

// fields is how many words after the time may name the level, when it is not called level.
const fields = 6

// parseLine returns when a line was written and how grave it is; the zero time and "" for what it does not say. A time without a year is the last such
// time before a day after near; one without a zone is UTC, which robots' clocks have.
func parseLine(line string, near time.Time) (at time.Time, level events.Level) {
	if len(line) < len("01-02 10:00:03") {
		return at, ""
	}
	head := line[:min(len(line), 400)]
	rest := head
	if strings.IndexByte(`[{"t0123456789`, head[0]) < 0 && (head[0] < 'A' || head[0] > 'Z') && head[0] != '<' && !strings.Contains(head, "level") {
		return at, ""
	}
	if m := moment.FindStringSubmatchIndex(head); m != nil {
		at, rest = parseTime(head[m[2]:m[3]]), head[m[1]:]
	} else if m := short.FindStringSubmatchIndex(head); m != nil {
		at, rest = yearless(head[m[2]:m[3]], near), head[m[1]:]
	}
	if strings.Contains(head, "level") {
		if m := named.FindStringSubmatch(head); m != nil {
			return at, words[strings.ToLower(m[1])]
		}
	}
	if at.IsZero() { // the words of a line that has no time are anything
		return at, ""
	}
	return at, wordLevel(rest)
}

func parseTime(s string) time.Time {
	s = strings.Replace(strings.Replace(s, ",", ".", 1), " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

func yearless(s string, near time.Time) time.Time {
	layout := "2006 Jan _2 15:04:05"
	if s[0] <= '9' {
		layout = "2006 01-02 15:04:05"
	}
	for year := near.Year() + 1; year > near.Year()-8; year-- { // 29 February is not in every year
		if t, err := time.Parse(layout, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006")+" "+s); err == nil && t.Before(near.Add(24*time.Hour)) {
			return t
		}
	}
	return time.Time{}
}

// wordLevel finds the level among the first words after the time: a word such as WARN, [error] or daemon.err, or the one letter of logcat, up to the
// tag, which ends with a colon.
func wordLevel(rest string) events.Level {
	for i, w := range strings.Fields(rest) {
		bare := strings.Trim(w, "[]<>()|:")
		if _, after, ok := strings.Cut(bare, "."); ok {
			bare = after // syslog's facility
		}
		if l, ok := words[strings.ToLower(bare)]; ok && (len(bare) > 1 || bare == strings.ToUpper(bare)) {
			return l
		}
		if i+1 == fields || strings.HasSuffix(w, ":") {
			break
		}
	}
	return ""
}

// Filter chooses lines; its zero value chooses all.
type Filter struct {
	File     string       // only those of this file
	Text     string       // part of the line, in any case
	Level    events.Level // at least so grave
	From, To time.Time    // To itself is not chosen; a line without a time is from the time of the line before it
}

// Any reports whether something is asked for.
func (f Filter) Any() bool { return f != Filter{} }

// gravity orders levels.
func gravity(l events.Level) int {
	if i := slices.Index(Levels, l); i >= 0 {
		return i
	}
	return slices.Index(Levels, events.Info)
}

func (f *Filter) wants(l *Line, lower string) bool {
	switch {
	case f.File != "" && l.File != f.File,
		f.Level != "" && gravity(l.Level) < gravity(f.Level),
		!f.From.IsZero() && (l.At.IsZero() || l.At.Before(f.From)),
		!f.To.IsZero() && (l.At.IsZero() || !l.At.Before(f.To)):
		return false
	}
	return lower == "" || strings.Contains(strings.ToLower(l.Text), lower)
}
