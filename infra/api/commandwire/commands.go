// Package commandwire holds the messages of cloud and robot about commands and intents (design section 4).
//
//	kennel/<thing>/down/cmd | down/intent   Command, from the cloud's outbox, sent again until there is a result or it expires
//	req/command/pull                        nothing -> Pull: whatever is open, oldest first; a robot asks at every connect
//	req/command/result                      Result -> Answer; a robot asks again until it is answered
//
// Either side may see anything twice. A robot executes an id once and tells the same result again; the cloud keeps the first result of an
// id and gives every repetition the same Answer.
package commandwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/api/topics"
)

// Names of the requests.
const (
	Service      = "command"
	PullMethod   = "pull"
	ResultMethod = "result"
)

// Limits. MaxOpen commands with MaxArgs of arguments fit one answer of a broker (envelope).
const (
	MaxOpen   = 32                 // commands of one thing that wait for a result
	MaxUrgent = 4                  // of MaxOpen, for commands that do not wait for others (Waits)
	MaxArgs   = 2 << 10            // bytes
	MaxDetail = 1 << 10            // bytes
	MaxTTL    = 7 * 24 * time.Hour // how far away an expiry may be
)

// Command asks a robot to do something once.
type Command struct {
	V    int    `json:"v"`
	ID   string `json:"id"` // a UUID
	Kind string `json:"kind"`
	// ExpiresInMS counts from the arrival, in milliseconds: robot clocks lie. At 0 the command must not be executed any more.
	ExpiresInMS int64 `json:"expires_in_ms"`
	// GivenUS orders a thing's commands: microseconds since 1970 by the cloud's clock, higher with each. One that began is not followed by
	// one that was given before it (Overtaken). 0: not said.
	GivenUS int64           `json:"given_us,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"` // an object; absent: {}
}

// ExpiresIn returns how long after its arrival the command may still begin.
func (c Command) ExpiresIn() time.Duration { return time.Duration(c.ExpiresInMS) * time.Millisecond }

// Overtaken reports whether c was given before a command that has begun. A message may be on its way for longer than its command may wait, and
// the cloud continues meanwhile. Only what may still be on its way counts: a cloud whose clock was wrong once is not refused for ever.
func (c Command) Overtaken(begunUS int64) bool {
	return c.GivenUS > 0 && c.GivenUS < begunUS && begunUS-c.GivenUS <= MaxTTL.Microseconds()
}

// Status is the outcome of a command on the robot.
type Status string

// The statuses.
const (
	Done    Status = "done"
	Failed  Status = "failed"  // Detail says why
	Expired Status = "expired" // it came too late, or after a later one, and was not executed
	Unknown Status = "unknown" // this robot does not know the kind
)

// Result is a robot's report about a command.
type Result struct {
	V        int    `json:"v"`
	ID       string `json:"id"`
	Status   Status `json:"status"`
	Detail   string `json:"detail,omitempty"` // for people, at most MaxDetail bytes
	Finished int64  `json:"finished_ms"`      // robot's clock, ms since 1970
}

// Answer says what the cloud has on record of a command, whichever report was first. After it a robot need not tell its result again.
type Answer struct {
	V     int    `json:"v"`
	ID    string `json:"id"`
	State string `json:"state"` // done, failed or expired
}

// Pull is the answer to req/command/pull.
type Pull struct {
	V        int       `json:"v"`
	Commands []Command `json:"commands"` // in the order they were given, at most MaxOpen
}

var (
	idPattern   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	wordPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
)

// IsID reports whether s is the id of a command: a lower-case UUID, safe as a file name.
func IsID(s string) bool { return idPattern.MatchString(s) }

// Topic returns the name below down/ that carries a kind.
func Topic(kind string) string {
	if kind == Intent {
		return topics.Intent
	}
	return topics.Cmd
}

// Encode returns the command as JSON.
func (c Command) Encode() ([]byte, error) { c.V = 1; return json.Marshal(c) }

// Encode returns the result as JSON.
func (r Result) Encode() ([]byte, error) { r.V = 1; return json.Marshal(r) }

// Encode returns the answer as JSON.
func (a Answer) Encode() ([]byte, error) { a.V = 1; return json.Marshal(a) }

// Encode returns the list as JSON.
func (p Pull) Encode() ([]byte, error) {
	out := Pull{V: 1, Commands: make([]Command, len(p.Commands))}
	for i, c := range p.Commands {
		c.V = 1
		out.Commands[i] = c
	}
	return json.Marshal(out)
}

// ParseCommand reads a command and checks everything but whether the kind is known and its arguments fit (Check): an older robot must be
// able to answer Unknown. Unknown fields are left for newer robots.
func ParseCommand(b []byte) (Command, error) {
	var c Command
	if err := json.Unmarshal(b, &c); err != nil {
		return Command{}, fmt.Errorf("command: %w", err)
	}
	if err := c.check(); err != nil {
		return Command{}, err
	}
	return c, nil
}

func (c Command) check() error {
	switch {
	case c.V != 1:
		return fmt.Errorf("command: version %d: want 1", c.V)
	case !idPattern.MatchString(c.ID):
		return fmt.Errorf("command: id %.80q: want a lower-case UUID", c.ID)
	case !wordPattern.MatchString(c.Kind):
		return fmt.Errorf("command %s: kind %.40q: want a word such as %s", c.ID, c.Kind, Ping)
	case c.GivenUS < 0:
		return fmt.Errorf("command %s: given_us %d: want microseconds since 1970", c.ID, c.GivenUS)
	case c.ExpiresInMS < 0 || c.ExpiresInMS > MaxTTL.Milliseconds():
		return fmt.Errorf("command %s: expires in %d ms: want 0 to %v", c.ID, c.ExpiresInMS, MaxTTL)
	}
	return checkObject("command "+c.ID, c.Args)
}

// checkObject accepts nothing, or one JSON object of at most MaxArgs bytes without U+0000, which Postgres cannot keep.
func checkObject(what string, args json.RawMessage) error {
	switch trimmed := bytes.TrimSpace(args); {
	case len(args) == 0:
		return nil
	case len(args) > MaxArgs:
		return fmt.Errorf("%s: args of %d bytes: want at most %d", what, len(args), MaxArgs)
	case !json.Valid(args) || trimmed[0] != '{':
		return fmt.Errorf("%s: args %.40q: want a JSON object", what, args)
	case !utf8.Valid(args) || bytes.Contains(args, []byte(`\u0000`)):
		return fmt.Errorf("%s: args: want UTF-8 without U+0000", what)
	}
	return nil
}

// ParseResult reads and checks a result.
func ParseResult(b []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return Result{}, fmt.Errorf("command result: %w", err)
	}
	switch {
	case r.V != 1:
		return Result{}, fmt.Errorf("command result: version %d: want 1", r.V)
	case !idPattern.MatchString(r.ID):
		return Result{}, fmt.Errorf("command result: id %.80q: want a lower-case UUID", r.ID)
	case len(r.Detail) > MaxDetail || strings.ContainsRune(r.Detail, 0):
		return Result{}, fmt.Errorf("command result %s: detail of %d bytes: want at most %d, without NUL", r.ID, len(r.Detail), MaxDetail)
	}
	switch r.Status {
	case Done, Failed, Expired, Unknown:
		return r, nil
	}
	return Result{}, fmt.Errorf("command result %s: status %.20q: want done, failed, expired or unknown", r.ID, r.Status)
}

// ParseAnswer reads and checks an answer.
func ParseAnswer(b []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return Answer{}, fmt.Errorf("answer to a command result: %w", err)
	}
	if a.V != 1 || !idPattern.MatchString(a.ID) || !wordPattern.MatchString(a.State) {
		return Answer{}, fmt.Errorf("answer to a command result: version %d, id %.80q, state %.40q: want version 1, a UUID and a word", a.V, a.ID, a.State)
	}
	return a, nil
}

// ParsePull reads and checks a list of commands; one bad command spoils it.
func ParsePull(b []byte) (Pull, error) {
	var p Pull
	if err := json.Unmarshal(b, &p); err != nil {
		return Pull{}, fmt.Errorf("open commands: %w", err)
	}
	if p.V != 1 || len(p.Commands) > MaxOpen {
		return Pull{}, fmt.Errorf("open commands: version %d, %d commands: want version 1 and at most %d", p.V, len(p.Commands), MaxOpen)
	}
	for _, c := range p.Commands {
		if err := c.check(); err != nil {
			return Pull{}, fmt.Errorf("open commands: %w", err)
		}
	}
	return p, nil
}

// Detail makes s fit for Result.Detail.
func Detail(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if len(s) > MaxDetail {
		s = strings.ToValidUTF8(s[:MaxDetail-len("…")], "") + "…"
	}
	return s
}
