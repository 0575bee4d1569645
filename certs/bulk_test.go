package certs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"kennel/certs"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

func hashHex(secret string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(secret))) }

func TestDelivery(t *testing.T) {
	w := newWorld(t)
	for name, file := range map[string]string{
		"bare":                       "vic:00000001\npleo:2," + hashHex("s2") + ",blue,\"two\nlines\"\n",
		"named columns":              "colour,secret_hash,thing\r\nred,,vic:00000001\r\nblue," + strings.ToUpper(hashHex("s2")) + ",pleo:2\r\n",
		"with a mark and blank line": "\xef\xbb\xbfthing\n\nvic:00000001\npleo:2\n",
	} {
		got, err := w.svc.RegisterAll(t.Context(), iotest.OneByteReader(strings.NewReader(file)))
		if err != nil || len(got) != 2 || got[0].Thing != "vic:00000001" || got[1].Thing != "pleo:2" || got[0].Secret == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		secret := got[1].Secret
		if strings.Contains(strings.ToLower(file), hashHex("s2")) {
			if secret != "" {
				t.Errorf("%s: a secret was made where a hash was given", name)
			}
			secret = "s2"
		}
		cert, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{
			Thing: "vic:00000001", Secret: got[0].Secret, CSR: request(t, newKey(t), "vic:00000001"),
		})
		if err != nil || cert.Chain[0].Subject.CommonName != "vic:00000001" {
			t.Errorf("%s: the secret that was made: %v", name, err)
		}
		if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: "pleo:2", Secret: secret, CSR: request(t, newKey(t), "pleo:2")}); err != nil {
			t.Errorf("%s: the second's secret: %v", name, err)
		}
		w = newWorld(t)
	}
}

// All or none, with the number of each bad line and what was expected there.
func TestDeliveryIsAllOrNone(t *testing.T) {
	w := newWorld(t)
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{
		Thing: string(vic), Secret: w.register(t, vic), CSR: request(t, newKey(t), vic),
	}); err != nil {
		t.Fatal(err)
	}
	file := strings.Join([]string{"thing,secret_hash",
		"vic:00000001",     // 2: good
		"VIC:00000002",     // 3
		"vic:00000001",     // 4
		"vic:00000003,abc", // 5
		"vic:00000004," + strings.Repeat("z", 64), // 6
		"vic:00000005," + hashHex("x"),            // 7: good
		"vic:00000006," + hashHex("x"),            // 8
		"",                                        // 9: left out
		`vic:0000"0007`,                           // 10
		"vic:00000008," + strings.Repeat("0", 64) + ",and,more,x", // 11
		",", // 12
	}, "\n")
	_, err := w.svc.RegisterAll(t.Context(), strings.NewReader(file))
	bad, ok := errors.AsType[*certs.DeliveryError](err)
	if !ok || errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != "csv_refused" {
		t.Fatalf("got %v", err)
	}
	want := map[int]string{
		3: "want species:serial", 4: "on line 2 already", 5: "64 hex digits", 6: "64 hex digits", 8: "on line 7 already",
		10: "in quotes", 11: "all zeros", 12: "want species:serial",
	}
	for _, p := range bad.Lines {
		if want[p.Line] == "" || !strings.Contains(p.Problem, want[p.Line]) {
			t.Errorf("line %d: %q, want %q", p.Line, p.Problem, want[p.Line])
		}
		delete(want, p.Line)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
	_, err = w.svc.RegisterAll(t.Context(), strings.NewReader("vic:00000001\n"+string(vic)+"\n"))
	if bad, ok := errors.AsType[*certs.DeliveryError](err); !ok || len(bad.Lines) != 1 || bad.Lines[0].Line != 2 ||
		!strings.Contains(bad.Lines[0].Problem, "released") {
		t.Errorf("one that has enrolled: %v", err)
	}
	for name, c := range map[string]struct {
		file io.Reader
		code string
	}{
		"empty":          {strings.NewReader(""), "csv_refused"},
		"a header alone": {strings.NewReader("thing,secret_hash\n"), "csv_refused"},
		"broken off":     {io.MultiReader(strings.NewReader("vic:1\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), "csv_broken_off"},
		"one open quote": {io.MultiReader(strings.NewReader("vic:1\n\""), io.LimitReader(zeros{}, certs.MaxCSV+5)), "csv_refused"},
		"too many":       {delivery(certs.MaxDelivery + 1), "csv_refused"},
	} {
		if _, err := w.svc.RegisterAll(t.Context(), c.file); errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := strings.Repeat("x\n", 5000)
	_, err = w.svc.RegisterAll(t.Context(), strings.NewReader(many))
	if bad, ok := errors.AsType[*certs.DeliveryError](err); !ok || len(bad.Lines) != 100 || bad.More != 4900 {
		t.Errorf("5000 bad lines: %v", err)
	}
	if st, err := w.store.Standing(t.Context(), "vic:00000001", certs.Key{}); err != nil || st.Known {
		t.Errorf("a line of a refused file was registered: %+v, %v", st, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func delivery(n int) io.Reader {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "vic:%08x\n", i)
	}
	return &b
}

func FuzzDelivery(f *testing.F) {
	f.Add([]byte("vic:00000001\npleo:2," + hashHex("x") + ",more\n"))
	f.Add([]byte("\xef\xbb\xbfcolour,thing,secret_hash\r\nred,vic:1,\r\n"))
	f.Add([]byte("\"vic:1\nvic:2\""))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := world{steps: new(steps)}
		var err error
		if w.svc, err = certs.New(certs.Config{
			Store: accepts{}, Batches: accepts{}, Requests: accepts{}, Issuer: noIssuer{}, Recorder: w.steps, ByAddr: noLimit{},
			ByThing: noLimit{},
		}); err != nil {
			t.Fatal(err)
		}
		got, err := w.svc.RegisterAll(t.Context(), bytes.NewReader(b))
		if err != nil {
			if errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) == "" || len(w.steps.all) > 0 {
				t.Fatalf("%v, recorded %v", err, w.steps.all)
			}
			return
		}
		// The registered things, written as CSV, register the same again.
		var again bytes.Buffer
		out := csv.NewWriter(&again)
		for _, r := range got {
			if _, err := thing.Parse(string(r.Thing)); err != nil {
				t.Fatal(err)
			}
			hash := ""
			if r.Secret != "" {
				hash = hashHex(r.Secret.Reveal())
			}
			_ = out.Write([]string{string(r.Thing), hash})
		}
		out.Flush()
		twice, err := w.svc.RegisterAll(t.Context(), &again)
		if err != nil || len(twice) != len(got) {
			t.Fatalf("%d came back as %d, %v", len(got), len(twice), err)
		}
		for i := range got {
			if twice[i].Thing != got[i].Thing {
				t.Fatalf("%s came back as %s", got[i].Thing, twice[i].Thing)
			}
		}
	})
}

type noIssuer struct{ certs.Issuer }

// accepts is a store that accepts every delivery.
type accepts struct {
	certs.Store
	certs.Batches
	certs.WaitingList
}

func (accepts) SetClaims(context.Context, []certs.NewClaim, time.Time, int) ([]certs.LineProblem, error) {
	return nil, nil
}
