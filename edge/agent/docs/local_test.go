package docs

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"kennel/jdocs"
)

func FuzzParseLocal(f *testing.F) {
	f.Add([]byte(`{"client_meta":"","cloud_accessed":true,"cloud_dirty_remainning_sec":3,"cloud_get_time":1538502000,"doc_version":7,"fmt_version":1,"jdoc":{"a":1}}`))
	f.Add([]byte(`{"cloud_dirty_remaining_sec":3,"jdoc":{} /* here */}`))
	f.Add([]byte(`{"jdoc":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseLocal(b)
		if err != nil {
			return
		}
		fields(d.JSON) // does not panic: it was checked
		e, err := d.encode()
		if err != nil {
			t.Fatalf("%q: encode: %v", b, err)
		}
		again, err := parseLocal(e)
		if err != nil || again != d {
			t.Errorf("%q: %+v, again %+v, %v", b, d, again, err)
		}
	})
}

func FuzzParseLedger(f *testing.F) {
	f.Add([]byte(`{"bases":[{"doc_version":7,"jdoc":{"a":1}}],"sent":[{"doc_version":7,"jdoc":{"a":2}}]}`))
	f.Add([]byte(`{"bases":[{"doc_version":7,"jdoc":7}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLedger(b)
		if err != nil {
			return
		}
		l = l.withSent(3, `{"x":1}`, false).withSent(3, `{"x":1}`, true)
		if !l.sent(3, `{"x": 1.0}`) || len(l.Sent) > keepSent || !l.created(3) {
			t.Errorf("sent: %+v", l.Sent)
		}
		l = l.withSent(4, `{}`, false).withBase(9, `{}`)
		if text, ok := l.base(9); !ok || text != "{}" || len(l.Bases) > keepBases || len(l.Sent) != 1 {
			t.Errorf("bases: %+v", l)
		}
		e, err := indented(l)
		if err != nil || !json.Valid(e) {
			t.Errorf("encode: %v", err)
		}
	})
}

// absent is a root in which the local copies are made right after each look for them.
type absent struct{ files }

func (absent) Stat(string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// TestLocalCopyThatAppears: a local copy that was missing a moment ago is read like any other.
func TestLocalCopyThatAppears(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	a, err := newAgent(r.cfg, absent{rootFiles{r.cfg.Root}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.cfg.Root.ReadFile(settingsFile)
	if err != nil {
		t.Fatal(err)
	}
	r.write(settingsFile, strings.Replace(string(b), `"en-US"`, `"de-DE"`, 1))
	a.reload(false)
	d, err := a.Get(jdocs.RobotSettings)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "locale", string(fields(d.JSON)["locale"]), `"de-DE"`)
}
