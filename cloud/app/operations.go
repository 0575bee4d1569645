package app

import (
	"fmt"
	"net/http"
	"slices"

	"kennel/cloud/access"
	"kennel/cloud/app/fleet"
	"kennel/cloud/app/health"
	"kennel/cloud/app/identity"
	"kennel/cloud/app/orders"
	"kennel/cloud/app/people"
	"kennel/cloud/app/records"
	"kennel/cloud/originals/originalswire"
	"kennel/cloud/web/console"
	"kennel/infra/op"
)

// mountConsole adds the console to mux. It is an error if a slice brings a page without a rule in the access table, which would be refused to every reader.
func mountConsole(mux *http.ServeMux, cfg console.Config) error {
	for _, e := range cfg.More {
		if _, known := access.HTTP["GET "+e.Address]; !known {
			return fmt.Errorf("the access table has no rule for the page %s", e.Address)
		}
	}
	return console.Mount(mux, cfg)
}

// Operations lists the operations of all slices, for their declarations alone: the description of the API and the access table are made of them.
func Operations() op.List {
	return slices.Concat(people.Operations(), fleet.Operations(), health.Operations(), records.Operations(), orders.Operations(), identity.Operations(), originalswire.Operations())
}
