package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"kennel/edge/env/robotfs"
	"kennel/jdocs"
)

// localDoc is a document as stored in PERS/jdocs/<docName>.json (VEC-JDS-07).
type localDoc struct {
	ClientMeta    string // normally empty
	CloudAccessed bool   // the cloud has been asked for it
	DirtySec      uint64 // seconds that a change may wait before it must be pushed; 0: nothing to push
	CloudGetTime  uint64 // when the cloud was last asked, seconds since 1970
	Version       uint64
	FmtVersion    uint64
	JSON          string // the document, compact
}

// localFile is its form in the file. The misspelt key is the original's; the right spelling is read as well.
type localFile struct {
	ClientMeta    string          `json:"client_meta"`
	CloudAccessed bool            `json:"cloud_accessed"`
	DirtySec      uint64          `json:"cloud_dirty_remainning_sec"`
	DirtySecRight *uint64         `json:"cloud_dirty_remaining_sec,omitempty"`
	CloudGetTime  uint64          `json:"cloud_get_time"`
	Version       uint64          `json:"doc_version"`
	FmtVersion    uint64          `json:"fmt_version"`
	Jdoc          json.RawMessage `json:"jdoc"`
}

// parseLocal reads a local copy. C comments are allowed, as in every file that people edit on a robot; the document must be an object.
func parseLocal(b []byte) (localDoc, error) {
	b, err := robotfs.StripComments(b)
	if err != nil {
		return localDoc{}, err
	}
	var f localFile
	if err := json.Unmarshal(b, &f); err != nil {
		return localDoc{}, err
	}
	text, err := compact(f.Jdoc)
	if err != nil {
		return localDoc{}, fmt.Errorf("jdoc: %w", err)
	}
	if f.DirtySecRight != nil {
		f.DirtySec = max(f.DirtySec, *f.DirtySecRight)
	}
	return localDoc{f.ClientMeta, f.CloudAccessed, f.DirtySec, f.CloudGetTime, f.Version, f.FmtVersion, text}, nil
}

// fields returns the top-level fields of a document; text was checked by compact before.
func fields(text string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic("docs: document was not checked: " + err.Error())
	}
	return m
}

// join is the opposite of fields.
func join(m map[string]json.RawMessage) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		panic("docs: field was not checked: " + err.Error())
	}
	return string(bytes.TrimSpace(buf.Bytes()))
}

func (d localDoc) encode() ([]byte, error) {
	return indented(localFile{ClientMeta: d.ClientMeta, CloudAccessed: d.CloudAccessed, DirtySec: d.DirtySec, CloudGetTime: d.CloudGetTime,
		Version: d.Version, FmtVersion: d.FmtVersion, Jdoc: json.RawMessage(d.JSON)})
}

// compact removes spacing and checks that b is a document (an object within the limits of VEC-JDS-10, which are about what is sent: a
// document at the limit is larger in its indented file).
func compact(b []byte) (string, error) {
	var buf bytes.Buffer
	if err := json.Compact(&buf, b); err != nil {
		return "", err
	}
	if err := jdocs.CheckJSON(buf.Bytes()); err != nil {
		return "", err
	}
	if buf.Bytes()[0] != '{' {
		return "", fmt.Errorf("%.40q is not an object", buf.Bytes())
	}
	return buf.String(), nil
}

// indented encodes for people: a file like this is looked at and edited by hand.
func indented(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "   ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// ledger records the last state that a document shared with the cloud. It is beside the local copy and always written before it: the local
// copy's version decides which entry counts, so that the two files need not change at once.
type ledger struct {
	// Bases are contents that the cloud had, the latest last: the common ground of a three-way merge.
	Bases []base `json:"bases"`
	// Sent are contents sent to the cloud while the local copy had Version. Until it has a later version the answer is unknown, and one of
	// them may be the cloud's content.
	Sent []base `json:"sent,omitempty"`
}

type base struct {
	Version uint64          `json:"doc_version"`
	Jdoc    json.RawMessage `json:"jdoc"`
	Created bool            `json:"created,omitempty"` // of a sent one: to create the document, not over Version
}

// keepBases: the current one, the one before it while the local copy is not written yet, and some for people who write back a copy
// that they read a moment ago.
const keepBases = 4

// keepSent bounds the writes of unknown outcome. Each is of one connection that broke.
const keepSent = 8

// lookBack is how many of the cloud's versions are searched for a document that was perhaps created from here. Each costs a request.
const lookBack = 16

func parseLedger(b []byte) (ledger, error) {
	var l ledger
	if err := json.Unmarshal(b, &l); err != nil {
		return ledger{}, err
	}
	for _, list := range [][]base{l.Bases, l.Sent} {
		for i := range list {
			text, err := compact(list[i].Jdoc)
			if err != nil {
				return ledger{}, fmt.Errorf("version %d: %w", list[i].Version, err)
			}
			list[i].Jdoc = json.RawMessage(text)
		}
	}
	return l, nil
}

// base returns the content of that version, if the ledger has it.
func (l ledger) base(version uint64) (string, bool) {
	for i := len(l.Bases) - 1; i >= 0; i-- {
		if l.Bases[i].Version == version {
			return string(l.Bases[i].Jdoc), true
		}
	}
	return "", false
}

// newest returns the newest base.
func (l ledger) newest() (base, bool) {
	if len(l.Bases) == 0 {
		return base{}, false
	}
	return l.Bases[len(l.Bases)-1], true
}

// withBase returns the ledger with one more base. Sent contents stay: until the local copy has the new version, a restart must still
// recognise its own content.
func (l ledger) withBase(version uint64, text string) ledger {
	return ledger{Bases: appendBounded(l.Bases, base{Version: version, Jdoc: json.RawMessage(text)}, keepBases), Sent: l.Sent}
}

// withSent returns the ledger with one more write under way. Those of other versions are settled.
func (l ledger) withSent(version uint64, text string, created bool) ledger {
	same := slices.DeleteFunc(slices.Clone(l.Sent), func(s base) bool { return s.Version != version })
	return ledger{Bases: l.Bases, Sent: appendBounded(same, base{version, json.RawMessage(text), created}, keepSent)}
}

// sent reports whether text was given to the cloud while the local copy had that version.
func (l ledger) sent(version uint64, text string) bool {
	return slices.ContainsFunc(l.Sent, func(s base) bool { return s.Version == version && jdocs.Equal(s.Jdoc, []byte(text)) })
}

// created reports whether the document was to be created while the local copy had that version.
func (l ledger) created(version uint64) bool {
	return slices.ContainsFunc(l.Sent, func(s base) bool { return s.Version == version && s.Created })
}

// unsettled reports whether anything was given to the cloud while the local copy had that version.
func (l ledger) unsettled(version uint64) bool {
	return slices.ContainsFunc(l.Sent, func(s base) bool { return s.Version == version })
}

// appendBounded copies list, without an entry that says the same, and appends b; the oldest go.
func appendBounded(list []base, b base, bound int) []base {
	out := make([]base, 0, bound+1)
	for _, have := range list {
		if have.Version != b.Version || !bytes.Equal(have.Jdoc, b.Jdoc) {
			out = append(out, have)
		}
	}
	out = append(out, b)
	return out[max(0, len(out)-bound):]
}
