package brokerauth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kennel/infra/atomicfile"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// Denied is the cloud's deny list. It is kept in a file, so that a broker that starts without the cloud still applies it.
// Safe for concurrent use.
type Denied struct {
	file string // "": in memory only

	writing sync.Mutex // one order at a time; taken before mu
	unsaved bool       // by writing

	mu      sync.RWMutex
	serials map[string]brokerapi.DenyCert
	keys    map[string]brokerapi.DenyCert
	things  map[thing.ID]string
}

// OpenDenied reads the file, if there is one. A file that cannot be read is an error: starting without it would let the revoked in.
func OpenDenied(file string) (*Denied, error) {
	d := &Denied{file: file, serials: map[string]brokerapi.DenyCert{}, keys: map[string]brokerapi.DenyCert{}, things: map[thing.ID]string{}}
	if file == "" {
		return d, nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := brokerapi.ParseDenyFile(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove the file if the cloud can be reached, which sends the list again", file, err)
	}
	d.merge(list, time.Now())
	return d, nil
}

// Take has an order in force when it returns, and on disk if it returns nil. changed is false for an order that said nothing new.
func (d *Denied) Take(order brokerapi.Deny, now time.Time) (changed bool, err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if changed = d.merge(order, now); !changed && !d.unsaved {
		return false, nil
	}
	err = d.save()
	d.unsaved = err != nil
	return changed, err
}

// merge adds order and reports whether anything changed. It drops expired certificates, because those are refused anyway.
func (d *Denied) merge(order brokerapi.Deny, now time.Time) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range order.Certs {
		if !c.Until.After(now) {
			continue
		}
		if _, known := d.serials[c.Serial]; c.Serial != "" && !known {
			d.serials[c.Serial], changed = c, true
		}
		if old, known := d.keys[c.Key]; c.Key != "" && (!known || old.Until.Before(c.Until)) {
			d.keys[c.Key], changed = c, true
		}
	}
	if order.Reset && !maps.Equal(d.things, order.Block) {
		d.things, changed = map[thing.ID]string{}, true
	}
	for id, reason := range order.Block {
		if old, known := d.things[id]; !known || old != reason {
			d.things[id], changed = reason, true
		}
	}
	for _, id := range order.Allow {
		if _, known := d.things[id]; known {
			delete(d.things, id)
			changed = true
		}
	}
	if changed {
		ended := func(_ string, c brokerapi.DenyCert) bool { return !c.Until.After(now) }
		maps.DeleteFunc(d.serials, ended)
		maps.DeleteFunc(d.keys, ended)
	}
	return changed
}

func (d *Denied) save() error {
	if d.file == "" {
		return nil
	}
	d.mu.RLock()
	all := brokerapi.Deny{Reset: true, Block: maps.Clone(d.things)}
	for _, c := range d.serials {
		all.Certs = append(all.Certs, c)
	}
	for _, c := range d.keys {
		if c.Serial == "" || d.serials[c.Serial] != c {
			all.Certs = append(all.Certs, c)
		}
	}
	d.mu.RUnlock()
	b, err := all.EncodeFile()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(d.file))
	if err != nil {
		return err
	}
	defer root.Close() // everything was synced
	return atomicfile.Write(root, filepath.Base(d.file), b, 0o600, 0o700)
}

// Check returns the refusal of who, or nil.
func (d *Denied) Check(who Identity) *Refusal {
	key := hex.EncodeToString(who.Key[:])
	d.mu.RLock()
	defer d.mu.RUnlock()
	c, revoked := d.keys[key]
	if !revoked {
		c, revoked = d.serials[who.Serial]
	}
	if revoked {
		return &Refusal{brokerapi.CodeRevoked, fmt.Sprintf("certificate %.40s of %.60s was revoked: %s", who.Serial, who.CN, c.Reason)}
	}
	if reason, blocked := d.things[who.Thing]; blocked && who.Thing != "" {
		return &Refusal{brokerapi.CodeBlocked, fmt.Sprintf("%s is blocked: %s", who.Thing, reason)}
	}
	return nil
}

// Blocked reports whether a thing is refused by name.
func (d *Denied) Blocked(id thing.ID) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, blocked := d.things[id]
	return blocked
}

// Revoked reports whether c is in the list.
func (d *Denied) Revoked(c brokerapi.DenyCert) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, serial := d.serials[c.Serial]
	_, key := d.keys[c.Key]
	return serial || key
}
