package registrycerts

import (
	"context"
	"reflect"
	"testing"

	"kennel/certs"
	"kennel/infra/thing"
)

// TestTableToldOfCertificates: the fleet's table hears only of steps that changed a certificate, and after all other listeners.
func TestTableToldOfCertificates(t *testing.T) {
	var passed recorded
	var changed []thing.ID
	told := tableTold{&passed, func(_ context.Context, id thing.ID) {
		if len(passed) == 0 || passed[len(passed)-1].Thing != id {
			t.Errorf("%s: told before the step was passed on", id)
		}
		changed = append(changed, id)
	}}
	steps := []certs.Step{
		{Thing: "vic:1", Step: certs.StepRegister, OK: true}, {Thing: "vic:2", Step: certs.StepEnroll, OK: true}, {Thing: "vic:3", Step: certs.StepEnroll},
		{Thing: "vic:4", Step: certs.StepRenew, OK: true}, {Step: certs.StepEnroll, OK: true}, {Thing: "vic:5", Step: certs.StepRevoke, OK: true},
		{Thing: "vic:6", Step: certs.StepRelease, OK: true},
	}
	for _, s := range steps {
		told.Record(t.Context(), s)
	}
	told.RecordAll(t.Context(), steps[:1])
	if want := []thing.ID{"vic:2", "vic:4", "vic:5", "vic:6"}; !reflect.DeepEqual(changed, want) {
		t.Errorf("told of %v, want %v", changed, want)
	}
	if want := append(steps, steps[0]); !reflect.DeepEqual([]certs.Step(passed), want) {
		t.Errorf("passed on %+v", passed)
	}
}

type recorded []certs.Step

func (r *recorded) Record(_ context.Context, s certs.Step) { *r = append(*r, s) }
