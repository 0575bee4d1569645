package app

import (
	"slices"

	"kennel/cloud/app/fleet"
	"kennel/cloud/app/health"
	"kennel/cloud/app/identity"
	"kennel/cloud/app/orders"
	"kennel/cloud/app/people"
	"kennel/cloud/app/records"
	"kennel/cloud/originals/originalswire"
	"kennel/infra/op"
)

// Operations lists the operations of all slices, for their declarations alone: the description of the API and the access table are made of them.
func Operations() op.List {
	return slices.Concat(people.Operations(), fleet.Operations(), health.Operations(), records.Operations(), orders.Operations(), identity.Operations(), originalswire.Operations())
}
