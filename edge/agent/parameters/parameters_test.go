package parameters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/infra/api/events"
	"kennel/jdocs"
)

type values = map[string]json.RawMessage

// body stores numbers from 0 to 9 while it is open; serial is a constant.
type body struct {
	holds values
	open  bool
}

func (*body) Document() (jdocs.Name, values) {
	return "body.Parameters", values{"gain": json.RawMessage("1"), "serial": json.RawMessage("7")}
}

func (b *body) Check(parameter string, v json.RawMessage) (json.RawMessage, error) {
	v = json.RawMessage(strings.Trim(string(v), `"`))
	if parameter != "gain" || len(v) != 1 {
		return nil, fmt.Errorf("%s: want a gain from 0 to 9", parameter)
	}
	return v, nil
}

func (b *body) Store(_ context.Context, v values) (values, error) {
	if !b.open {
		return nil, errors.New("want the body open")
	}
	maps.Copy(b.holds, v)
	return maps.Clone(b.holds), nil
}

// store is one document, whose text is a JSON object.
type store values

func (d store) Get(jdocs.Name) (jdocs.Doc, error) {
	b, err := json.Marshal(d)
	return jdocs.Doc{JSON: string(b)}, err
}

func (d store) Set(_ context.Context, _ jdocs.Name, fields values) error {
	for name, v := range fields {
		if d[name] = v; string(v) == "null" {
			delete(d, name)
		}
	}
	return nil
}

// TestSteps: what the memory can have waits until it is open, and is stored then; what it cannot have is taken back and reported; a new start knows
// what is stored.
func TestSteps(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	said := []string{}
	emit := func(e events.Event) { said = append(said, strings.TrimPrefix(e.Name, "robot.parameters.")+" "+e.S1) }
	memory := &body{holds: values{"gain": json.RawMessage("1"), "serial": json.RawMessage("7")}}
	doc := store{"gain": json.RawMessage("1"), "serial": json.RawMessage("7")}
	var k *Keeper
	start := func() {
		if k, err = New(root, memory, doc, emit, func() {}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	start()
	for _, tt := range []struct {
		name    string
		set     values
		do      func()
		waiting string
		doc     string
		said    []string
	}{
		{"nothing changed", nil, nil, "", `{"gain":1,"serial":7}`, nil},
		{"while it is shut", values{"gain": json.RawMessage("3")}, nil, "parameters not stored yet (gain): want the body open",
			`{"gain":3,"serial":7}`, nil},
		{"taken back by a person", values{"gain": json.RawMessage("1")}, nil, "", `{"gain":1,"serial":7}`, nil},
		{"refused", values{"gain": json.RawMessage("30"), "serial": json.RawMessage("8"), "wings": json.RawMessage("2")}, nil, "", `{"gain":1,"serial":7}`,
			[]string{"refused gain", "refused serial", "refused wings"}},
		{"open", values{"gain": json.RawMessage(`"4"`)}, func() { memory.open = true }, "", `{"gain":4,"serial":7}`, []string{"stored gain"}},
		{"another start", nil, func() { memory.open = false; start() }, "", `{"gain":4,"serial":7}`, nil},
	} {
		said = nil
		if tt.do != nil {
			tt.do()
		}
		if err := doc.Set(t.Context(), "", tt.set); err != nil {
			t.Fatal(err)
		}
		err := k.step(t.Context())
		got, _ := doc.Get("")
		if k.Waiting() != tt.waiting || (err == nil) != (tt.waiting == "") || got.JSON != tt.doc || !slices.Equal(said, tt.said) {
			t.Errorf("%s: waiting %q, %v, %s, said %q", tt.name, k.Waiting(), err, got.JSON, said)
		}
	}
}

// TestRun: a change of the document wakes the keeper, one of another document does not.
func TestRun(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stored := make(chan string, 1)
	memory := &body{holds: values{}, open: true}
	k, err := New(root, memory, store{"gain": json.RawMessage("5")}, func(e events.Event) { stored <- e.S1 }, func() {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	k.Changed("other.Document")
	if len(k.wake) != 0 {
		t.Error("another document woke it")
	}
	k.Changed("body.Parameters")
	k.Changed("body.Parameters")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	if got := <-stored; got != "gain" {
		t.Errorf("stored %q, want gain", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
