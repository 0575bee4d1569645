// Package catalog lists the operations of all slices, without the services that they call: what the description of the API and the access table are made of.
package catalog

import (
	"slices"

	"kennel/cloud/alert/alertapi"
	"kennel/cloud/cohort/cohortapi"
	"kennel/cloud/crash/crashapi"
	"kennel/cloud/webhook/webhookapi"
	"kennel/infra/op"
)

// All returns the operations of all slices that declare them, for their declarations alone.
func All() op.List {
	return slices.Concat(
		cohortapi.Operations(nil, cohortapi.Config{}),
		alertapi.Operations(nil, nil),
		crashapi.Operations(nil, nil, nil),
		webhookapi.Operations(nil, nil),
	)
}
