package certsbroker_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"

	"kennel/certs"
	"kennel/certs/certsbroker"
	"kennel/infra/thing"
)

// orders is a broker that remembers what it was told.
type orders struct {
	said  []string
	calls int // of Provision
	err   error
}

func (o *orders) Kick(_ context.Context, id thing.ID, reason string) error {
	o.said = append(o.said, "kick "+string(id)+" "+reason)
	return o.err
}
func (o *orders) Ready(context.Context) error { return nil }
func (o *orders) Provision(_ context.Context, ids ...thing.ID) error {
	o.calls++
	for _, id := range ids {
		o.said = append(o.said, "provision "+string(id))
	}
	return o.err
}

type recorded []certs.Step

// batches is a recorder of whole deliveries.
type batches struct {
	recorded
	sizes []int
}

func (b *batches) RecordAll(_ context.Context, all []certs.Step) { b.sizes = append(b.sizes, len(all)) }

// TestBrokerToldOfADelivery: a delivery is one order to the broker and one to the record.
func TestBrokerToldOfADelivery(t *testing.T) {
	all := []certs.Step{{Thing: "vic:1", Step: certs.StepRegister, OK: true}, {Thing: "vic:2", Step: certs.StepRegister, OK: true}}
	for _, err := range []error{nil, errors.New("no broker")} {
		o := &orders{err: err}
		r := &batches{}
		told, ok := certsbroker.Tell(o, r, slog.New(slog.DiscardHandler)).(certs.BatchRecorder)
		if !ok {
			t.Fatal("what tells the broker takes no deliveries")
		}
		told.RecordAll(t.Context(), all)
		if want := []string{"provision vic:1", "provision vic:2"}; !reflect.DeepEqual(o.said, want) || o.calls != 1 {
			t.Errorf("told %q in %d orders, want %q in one", o.said, o.calls, want)
		}
		if !reflect.DeepEqual(r.sizes, []int{2}) || len(r.recorded) > 0 {
			t.Errorf("recorded %v and %v, want one delivery of two", r.sizes, r.recorded)
		}
	}
}

func (r *recorded) Record(_ context.Context, s certs.Step) { *r = append(*r, s) }

// TestBrokerTold: the broker hears of who is new before the robot has its certificate, and of who is revoked; steps are recorded whatever
// the broker says.
func TestBrokerTold(t *testing.T) {
	steps := []certs.Step{
		{Thing: "vic:1", Step: certs.StepRegister, OK: true}, {Thing: "vic:1", Step: certs.StepEnroll, OK: true}, {Thing: "vic:2", Step: certs.StepEnroll},
		{Thing: "vic:1", Step: certs.StepRenew, OK: true}, {Step: certs.StepEnroll, OK: true}, {Thing: "vic:1", Step: certs.StepRevoke, OK: true, Reason: "lost"},
	}
	for _, err := range []error{nil, errors.New("no broker")} {
		o := &orders{err: err}
		var r recorded
		told := certsbroker.Tell(o, &r, slog.New(slog.DiscardHandler))
		for _, s := range steps {
			told.Record(t.Context(), s)
		}
		if want := []string{"provision vic:1", "provision vic:1", "kick vic:1 its certificates were revoked: lost"}; !reflect.DeepEqual(o.said, want) {
			t.Errorf("told %q, want %q", o.said, want)
		}
		if !reflect.DeepEqual([]certs.Step(r), steps) {
			t.Errorf("recorded %+v", r)
		}
	}
}
