package jdocswire

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"kennel/infra/errs"
	"kennel/jdocs"
)

func TestUint(t *testing.T) {
	for in, want := range map[string]uint64{`7`: 7, `"7"`: 7, `18446744073709551615`: math.MaxUint64, `"18446744073709551615"`: math.MaxUint64} {
		var got Uint
		if err := json.Unmarshal([]byte(in), &got); err != nil || uint64(got) != want {
			t.Errorf("%s: %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{`-1`, `1.5`, `"x"`, `""`, `18446744073709551616`, `true`, `null`, `{}`} {
		var got Uint
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("%s: %d, want an error", in, got)
		}
	}
}

// canned answers every request with the same bytes.
type canned []byte

func (c canned) Do(context.Context, string, string, []byte) ([]byte, error) { return c, nil }

func TestClientRefusesWhatIsNoAnswer(t *testing.T) {
	for _, answer := range []string{``, `[]`, `{}`, `{"items":[]}`, `{"items":[{"status":"PERHAPS","doc":{}}]}`,
		`{"items":[{"status":"CHANGED","doc":{"doc_version":-1}}]}`} {
		got, err := NewClient(canned(answer)).Read(t.Context(), []jdocs.Item{{Name: jdocs.RobotSettings}})
		if err == nil {
			t.Errorf("%q: %v, want an error", answer, got)
		}
	}
}

func FuzzClient(f *testing.F) {
	f.Add([]byte(`{"items":[{"status":"CHANGED","doc":{"doc_version":"7","fmt_version":2,"client_metadata":"","json_doc":"{}"}}]}`))
	f.Add([]byte(`{"status":"ACCEPTED","latest_doc_version":7,"latest_version":7}`))
	f.Add([]byte(`{"found":true,"by_you":true,"doc":{}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := NewClient(canned(answer))
		if res, err := c.Read(t.Context(), []jdocs.Item{{Name: jdocs.RobotSettings}}); err == nil && len(res) != 1 {
			t.Errorf("%q: %d results to one item", answer, len(res))
		}
		for _, err := range []error{
			second(c.Write(t.Context(), jdocs.RobotSettings, jdocs.Doc{})),
			second(c.Delete(t.Context(), jdocs.RobotSettings)),
		} {
			if k := errs.KindOf(err); err != nil && k != errs.Corrupt && k != errs.Invalid {
				t.Errorf("%q: kind %v: %v", answer, k, err)
			}
		}
		_, _, _, _ = c.Revision(t.Context(), jdocs.RobotSettings, 1)
	})
}

func second[T any](_ T, err error) error { return err }
