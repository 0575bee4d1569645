package docs_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/jdocspb"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// original is an original robot: it speaks jdocspb and follows VEC-JDS-02 alone. It writes whole documents with the version last returned, takes over the
// latest version when that is rejected, and writes again.
type original struct {
	w    *world
	id   thing.ID
	docs map[jdocs.Key]*originalDoc
	op   *work // one request at a time
}

type originalDoc struct {
	name    jdocs.Name
	version uint64
	json    string
	dirty   bool
	edits   int // to tell whether it changed while a write was under way
}

func (d *originalDoc) text() string { return d.json }

func newOriginal(w *world, id thing.ID) *original {
	o := &original{w: w, id: id, docs: map[jdocs.Key]*originalDoc{}}
	for _, key := range []jdocs.Key{o.settings(), o.accounts()} {
		o.docs[key] = &originalDoc{name: key.Name, json: jdocs.Default(key.Name).JSON}
		w.wholesale[key] = map[string]bool{}
	}
	return o
}

func (o *original) settings() jdocs.Key { return jdocs.Key{Thing: o.id, Name: jdocs.RobotSettings} }
func (o *original) accounts() jdocs.Key {
	return jdocs.Key{Account: o.w.account, Name: jdocs.AccountSettings}
}

func (o *original) pick() (jdocs.Key, *originalDoc) {
	key := []jdocs.Key{o.settings(), o.accounts()}[o.w.pick("document", 2)]
	return key, o.docs[key]
}

func (o *original) changes() {
	key, d := o.pick()
	o.change(key, d, o.w.pickField())
}

func (o *original) change(key jdocs.Key, d *originalDoc, field string) {
	c := o.w.wants(string(o.id), key, field)
	o.w.say("the original sets %s = %d in its %s", field, c.n, key.Name)
	text, err := jdocs.SetFields(key.Name, d.json, c.fields())
	if err != nil {
		o.w.fatalf("%v", err)
	}
	d.json, d.dirty, d.edits = text, true, d.edits+1
	c.saved = true
}

// asks begins a write, if there is something to write, or a read.
func (o *original) asks(write bool) {
	key, d := o.pick()
	if o.op != nil || write && !d.dirty {
		o.w.t.Skip("cannot")
	}
	if k := o.w.pickKenneld(); write {
		o.write(k, key, d)
	} else {
		o.read(k, key, d)
	}
}

func (o *original) start(k *kenneld, what string, f func(context.Context), settled func(answered bool)) {
	var mine *work
	mine = o.w.at(k, what, f, func(answered bool) {
		if o.op == mine {
			o.op = nil
		}
		settled(answered)
	})
	if !mine.over {
		o.op = mine
	}
}

// failed reports an error that a death or a broken connection explains; any other fails the test.
func (o *original) failed(err error) bool {
	if c := status.Code(err); c != codes.OK && c != codes.Unavailable && c != codes.Internal {
		o.w.fatalf("the original was refused: %v", err)
	}
	return err != nil
}

// hangUp forgets a request whose connection broke.
func (o *original) hangUp(broken *work) {
	if o.op == broken {
		o.op = nil
	}
}

func (o *original) write(k *kenneld, key jdocs.Key, d *originalDoc) {
	doc := &jdocspb.Jdoc{DocVersion: d.version, FmtVersion: jdocs.Default(key.Name).FmtVersion, JsonDoc: d.json}
	o.w.wholesale[key][d.json] = true
	edits, floor, owing := d.edits, o.w.floor[key], o.w.owing()
	var res *jdocspb.WriteDocResp
	var err error
	o.start(k, fmt.Sprintf("the original writes its %s over version %d", key.Name, d.version), func(ctx context.Context) {
		res, err = k.jdocs.WriteDoc(o.w.house.call(ctx, o.id), &jdocspb.WriteDocReq{UserId: o.w.account, Thing: string(o.id), DocName: string(key.Name), Doc: doc})
	}, func(answered bool) {
		latest := res.GetLatestDocVersion()
		o.w.say("the original wrote %s over version %d: heard: %v, %v, latest %d", key.Name, doc.GetDocVersion(), answered, res.GetStatus(), latest)
		switch {
		case !answered || o.failed(err):
		case res.GetStatus() == jdocspb.WriteDocResp_ACCEPTED:
			o.w.accepted(key, latest, floor, string(o.id), owing)
			d.version, d.dirty = latest, d.edits != edits
		case res.GetStatus() == jdocspb.WriteDocResp_REJECTED_BAD_DOC_VERSION:
			if latest != 0 && latest < floor {
				o.w.fatalf("the original was told that version %d of %s is the latest after version %d had been reported", latest, key, floor)
			}
			d.version = latest
		default:
			o.w.fatalf("write of %s: %v", key, res.GetStatus())
		}
	})
}

func (o *original) read(k *kenneld, key jdocs.Key, d *originalDoc) {
	edits, floor, mine := d.edits, o.w.floor[key], d.version
	var res *jdocspb.ReadDocsResp
	var err error
	o.start(k, fmt.Sprintf("the original reads %s, it has version %d", key.Name, mine), func(ctx context.Context) {
		res, err = k.jdocs.ReadDocs(o.w.house.call(ctx, o.id), &jdocspb.ReadDocsReq{UserId: o.w.account, Thing: string(o.id),
			Items: []*jdocspb.ReadDocsReq_Item{{DocName: string(key.Name), MyDocVersion: mine}}})
	}, func(answered bool) {
		if !answered || o.failed(err) {
			return
		}
		found, doc := res.GetItems()[0].GetStatus(), res.GetItems()[0].GetDoc()
		o.w.say("the original read %s: %v, version %d", key.Name, found, doc.GetDocVersion())
		switch {
		case found == jdocspb.ReadDocsResp_NOT_FOUND:
			if floor > 0 && o.w.deletes[key] == 0 {
				o.w.fatalf("%s is gone: nobody deleted it", key)
			}
			if mine != 0 && d.version == mine { // it makes the document again
				d.version, d.dirty, d.edits = 0, true, d.edits+1
			}
		case doc.GetDocVersion() < floor:
			o.w.fatalf("the original reads version %d of %s after version %d had been reported", doc.GetDocVersion(), key, floor)
		case found == jdocspb.ReadDocsResp_CHANGED && !d.dirty && d.edits == edits && doc.GetDocVersion() > d.version:
			d.json, d.version = doc.GetJsonDoc(), doc.GetDocVersion()
		}
	})
}

// deletes has its settings deleted in the cloud; it makes them again when it finds out.
func (o *original) deletes() {
	if o.op != nil {
		o.w.t.Skip("cannot")
	}
	key, k := o.settings(), o.w.pickKenneld()
	o.w.deletes[key]++
	var err error
	o.start(k, "the original deletes its settings", func(ctx context.Context) {
		_, err = k.jdocs.DeleteDoc(o.w.house.call(ctx, o.id), &jdocspb.DeleteDocReq{UserId: o.w.account, Thing: string(o.id), DocName: string(key.Name)})
	}, func(answered bool) {
		o.w.say("the original deleted its settings: heard: %v, failed: %v", answered, answered && o.failed(err))
	})
}

// settle brings the original in step: it reads, and writes what it has to write.
func (o *original) settle() {
	for _, key := range []jdocs.Key{o.settings(), o.accounts()} {
		d := o.docs[key]
		for tries := 0; ; tries++ {
			k := o.w.house.kenneld[tries%2]
			o.read(k, key, d)
			o.finish()
			if !d.dirty {
				break
			}
			o.write(k, key, d)
			o.finish()
			if tries > 8 {
				o.w.fatalf("the original does not come to an end with %s", key)
			}
		}
	}
}

func (o *original) finish() {
	if o.op != nil {
		o.w.finish(o.op)
	}
}
