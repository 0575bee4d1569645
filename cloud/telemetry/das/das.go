package das

import (
	"context"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// Key names one boot of one robot: the space in which sequence numbers are unique (VEC-DAS-02, VEC-DAS-03).
type Key struct {
	Thing  thing.ID
	BootID string
}

// Item is one batch of a group.
type Item struct {
	Thing  thing.ID
	Events []events.Event // one boot, ascending seq, at least one
	Origin string
}

// Origins say by what it is believed whose a batch is, the surest first in the order of texts. A boot has the origin of its least sure batch.
const (
	Certified = ""         // a device certificate
	Signed    = "signed"   // temporary credentials of the robot's
	Claimed   = "unsigned" // an original robot's own word, and its address (package intake)
)

// Boot says which events came of one boot of a robot.
type Boot struct {
	BootID string    `json:"boot_id"`
	First  uint64    `json:"first"` // seq
	Last   uint64    `json:"last"`  // seq
	Events uint64    `json:"events"`
	Lost   uint64    `json:"lost"` // events between first and last that never came: quota, quarantine, or on their way
	Gaps   []Span    `json:"gaps"` // the first ones
	Latest time.Time `json:"latest"`
	Origin string    `json:"origin,omitempty"` // signed, unsigned; "": a device certificate
}

// maxGaps is how many gaps of a boot are listed.
const maxGaps = 20

// NewBoot returns what a set of sequence numbers, which is not empty, says of its boot.
func NewBoot(id string, s Seqs, latest time.Time, origin string) Boot {
	b := Boot{BootID: id, First: s[0].First, Last: s[len(s)-1].Last, Gaps: []Span{}, Latest: latest, Origin: origin}
	for i, span := range s {
		b.Events += span.Last - span.First + 1
		if i > 0 && len(b.Gaps) < maxGaps {
			b.Gaps = append(b.Gaps, Span{s[i-1].Last + 1, span.First - 1})
		}
	}
	b.Lost = b.Last - b.First + 1 - b.Events
	return b
}

// Key returns the boot the item belongs to.
func (it Item) Key() Key { return Key{it.Thing, it.Events[0].BootID} }

// Group holds the batches that one transaction stores.
type Group struct {
	Received time.Time
	Items    []Item
}

// Raw says where the bytes of a group are: in S3 under Key, or, while S3 is away, in Body, to be moved to Key later.
type Raw struct {
	Key  string
	Body []byte
}

// Outcome is the result of a commit.
type Outcome struct {
	Stored  int     // events that are new
	Known   int     // events that were stored before
	Refused []error // one per item: nil if stored, else an error of kind Invalid
}

// Writer is the storage that the Ingester needs. Safe for concurrent use by any number of processes.
type Writer interface {
	// Commit stores those events of g that are not stored yet, and raw, in one transaction. An error of kind Invalid says that some of
	// the data can never be stored; any other, that it may be later. After an error the transaction may or may not have happened, and
	// the same events may be given again.
	Commit(ctx context.Context, g Group, raw Raw) (Outcome, error)
	// MoveRaw hands one waiting raw body to put and forgets it when put succeeds. It returns false when none waits.
	MoveRaw(ctx context.Context, put func(ctx context.Context, key string, body []byte) error) (bool, error)
}

// Record is a stored event.
type Record struct {
	Thing    thing.ID  `json:"thing"`
	Received time.Time `json:"received"` // by the cloud's clock
	events.Event
}

// Cursor is a place in the list of all records, newest first. The zero value is the newest end.
type Cursor struct {
	Received time.Time
	Thing    thing.ID
	BootID   string
	Seq      uint64
}

// Loss is a gap in the sequence numbers of one boot of a robot: events that did not come, or did not come yet.
type Loss struct {
	BootID      string    `json:"boot_id"`
	First, Last uint64    // the sequence numbers that are missing
	From, To    time.Time // when the events before and after the gap were received
}

// Events is how many events are missing.
func (l Loss) Events() uint64 { return l.Last - l.First + 1 }

// Position is a place in the order in which commits became visible.
type Position uint64

// Reader is the storage that Service needs.
type Reader interface {
	// List returns at most limit records older than before, newest first.
	List(ctx context.Context, f Filter, limit int, before Cursor) ([]Record, error)
	// Stream calls fn for the oldest records that f chooses, at most limit of them, in the order in which they were received.
	Stream(ctx context.Context, f Filter, limit int, fn func(Record) error) error
	// Counts counts records; the filter has both times.
	Counts(ctx context.Context, q CountsQuery) (Counts, error)
	// Experiments returns what robots told of since a time, by key.
	Experiments(ctx context.Context, since time.Time) ([]Experiment, error)
	// Arms returns how the robots of each variation did, and how many had several; q has both times.
	Arms(ctx context.Context, q CompareQuery) (arms []Arm, changed int, err error)
	// Losses returns gaps in the sequence numbers of a thing's boots.
	Losses(ctx context.Context, id thing.ID, from, to time.Time) ([]Loss, error)
	// Position returns the place before the first commit received at or after since; the zero time asks for the place after all.
	Position(ctx context.Context, since time.Time) (Position, error)
	// Changes returns records committed after from, in order of commit, the place after them, and whether more is there already. It
	// reads at least one commit if there is one, and not many more than some ten thousand events. No commit is ever passed over, also
	// not a slow one.
	Changes(ctx context.Context, f Filter, from Position) (recs []Record, next Position, more bool, err error)
	// Boots returns at most limit boots of a thing of which something came, and was recorded, at or after since, the latest first.
	Boots(ctx context.Context, id thing.ID, since time.Time, limit int) ([]Boot, error)
}

// Blobs keeps raw batches (S3).
type Blobs interface {
	Put(ctx context.Context, key string, body []byte) error
}
