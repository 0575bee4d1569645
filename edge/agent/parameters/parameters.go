// Package parameters keeps a document in step with the parameters that a body stores in its own memory.
//
//	document, changed in the cloud or here ─► check ─► the body's memory, while it is open for tools
//	a value that the body cannot have      ─► the document gets the stored value back
//
// The memory's last content is stored beside the document, so that a change can be told from a stored value.
package parameters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/logging"
	"kennel/infra/wake"
	"kennel/jdocs"
)

// storedFile, below the robot's root, holds the values that the memory held last. It outlives a wipe of the user data, as the memory does.
const storedFile = "persist/kennel/parameters.json"

// retry is how often a memory that is not open for tools is tried while a change waits; own default.
const retry = 3 * time.Second

// Memory is the memory of a body.
type Memory interface {
	// Document returns the name of the document, and the parameters that a body leaves its factory with.
	Document() (jdocs.Name, map[string]json.RawMessage)
	// Check returns a value as the memory holds it. The error says what the parameter takes.
	Check(parameter string, v json.RawMessage) (json.RawMessage, error)
	// Store stores values, all or none, and makes the body use them. It returns all that the memory then holds.
	Store(ctx context.Context, values map[string]json.RawMessage) (map[string]json.RawMessage, error)
}

// Docs are the robot's documents (docs.Agent).
type Docs interface {
	Get(name jdocs.Name) (jdocs.Doc, error)
	Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) error
}

// Keeper keeps one document. Its methods are safe for concurrent use; Run is called once.
type Keeper struct {
	root   *os.Root
	memory Memory
	docs   Docs
	name   jdocs.Name
	emit   func(events.Event)
	news   func()
	log    *slog.Logger
	wake   wake.Signal // one slot
	stored map[string]json.RawMessage

	mu      sync.Mutex
	waiting string // the waiting changes, in words; "": none
}

// Stored returns the document's name, and the memory's last known content.
func Stored(root *os.Root, m Memory) (name jdocs.Name, values map[string]json.RawMessage, err error) {
	name, values = m.Document()
	if err := robotfs.ReadJSON(root, storedFile, &values); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("parameters: %w", err)
	}
	return name, values, nil
}

// New returns the keeper of the parameters of the robot below root. emit records an event; news is called when the result of Waiting may
// have changed.
func New(root *os.Root, m Memory, d Docs, emit func(events.Event), news func(), log *slog.Logger) (*Keeper, error) {
	name, stored, err := Stored(root, m)
	return &Keeper{root: root, memory: m, docs: d, name: name, emit: emit, news: news, log: log, wake: wake.New(), stored: stored}, err
}

// Changed says that a document changed.
func (k *Keeper) Changed(name jdocs.Name) {
	if name != k.name {
		return
	}
	k.wake.Set()
}

// Waiting returns the changes that wait to be stored, in words; "" if there are none.
func (k *Keeper) Waiting() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting
}

// Run stores changes until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		err := k.step(ctx)
		var again <-chan time.Time
		if err != nil {
			k.log.DebugContext(ctx, "parameters not stored", logging.Err, err)
			again = time.After(retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-again:
		}
	}
}

// step reverts values that cannot be stored, and stores the rest. After an error step must be called again.
func (k *Keeper) step(ctx context.Context) error {
	doc, err := k.docs.Get(k.name)
	if err != nil {
		return err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc.JSON), &values); err != nil {
		return err
	}
	repaired, changed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given, stored := values[name], k.stored[name]
		if stored != nil && jdocs.Equal(given, stored) {
			continue
		}
		good, err := k.memory.Check(name, given)
		switch {
		case err != nil:
			k.emit(events.Event{Source: "agentd", Level: events.Warning, Name: "robot.parameters.refused", S1: name, S2: string(given), S3: err.Error()})
			good = stored
		case !jdocs.Equal(good, stored):
			changed[name] = good
		}
		if !jdocs.Equal(good, given) {
			repaired[name] = good
			if good == nil {
				repaired[name] = json.RawMessage("null")
			}
		}
	}
	if len(repaired) > 0 {
		if err := k.docs.Set(ctx, k.name, repaired); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		k.say("")
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(changed)), ", ")
	k.say("parameters are being stored: " + names)
	held, err := k.memory.Store(ctx, changed)
	if err != nil {
		k.say(fmt.Sprintf("parameters not stored yet (%s): %v", names, err))
		return err
	}
	b, err := json.Marshal(held)
	if err == nil {
		err = robotfs.WriteFile(k.root, storedFile, b, 0o644)
	}
	if err != nil {
		return err
	}
	k.stored = held
	k.say("")
	k.emit(events.Event{Source: "agentd", Name: "robot.parameters.stored", S1: names, I1: events.Num(int64(len(changed)))})
	return k.docs.Set(ctx, k.name, held)
}

func (k *Keeper) say(waiting string) {
	k.mu.Lock()
	was := k.waiting
	k.waiting = waiting
	k.mu.Unlock()
	if waiting != was {
		k.news()
	}
}
