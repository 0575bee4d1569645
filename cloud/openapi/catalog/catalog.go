// Package catalog lists the operations of all slices, without the services that they call: what the description of the API and the access table are made of.
package catalog

import (
	"slices"

	"kennel/certs/certsapi"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/alert/alertapi"
	"kennel/cloud/artifact/artifactapi"
	"kennel/cloud/bulk/bulkapi"
	"kennel/cloud/cohort/cohortapi"
	"kennel/cloud/command/commandapi"
	"kennel/cloud/crash/crashapi"
	"kennel/cloud/das/dasapi"
	"kennel/cloud/door/doorapi"
	"kennel/cloud/hawkbit/hawkbitapi"
	"kennel/cloud/health/healthapi"
	"kennel/cloud/intents/intentsapi"
	"kennel/cloud/liveview/liveviewapi"
	"kennel/cloud/originals/originalsapi"
	"kennel/cloud/owner/ownerapi"
	"kennel/cloud/preflight/preflightapi"
	"kennel/cloud/registry/registryapi"
	"kennel/cloud/rollout/rolloutapi"
	"kennel/cloud/token/tokenapi"
	"kennel/cloud/tufrepo/tufrepoapi"
	"kennel/cloud/uploads/uploadsapi"
	"kennel/cloud/voice/voiceapi"
	"kennel/cloud/webhook/webhookapi"
	"kennel/infra/op"
	"kennel/jdocs/jdocsapi"
	"kennel/ota/otaapi"
)

// All returns the operations of all slices that declare them, for their declarations alone.
func All() op.List {
	return slices.Concat(
		accountapi.Operations(nil, nil, nil),
		accountapi.SecondOperations(nil),
		accountapi.PasskeyOperations(nil, nil, nil),
		accountapi.OwnersOperations(accountapi.OwnersConfig{}),
		ownerapi.Operations(nil, ownerapi.Config{}),
		intentsapi.Operations(nil, intentsapi.Config{}),
		registryapi.Operations(nil, nil),
		healthapi.Operations(nil),
		doorapi.Operations(nil),
		preflightapi.Operations(nil),
		cohortapi.Operations(nil, cohortapi.Config{}),
		alertapi.Operations(nil, nil),
		bulkapi.Operations(nil, nil),
		jdocsapi.Operations(nil),
		commandapi.Operations(nil, commandapi.Config{}),
		liveviewapi.Operations(nil, nil),
		voiceapi.Operations(voiceapi.Config{}),
		crashapi.Operations(nil, nil, nil),
		uploadsapi.Operations(nil, uploadsapi.Config{}),
		dasapi.Operations(nil, dasapi.Config{}),
		otaapi.Operations(nil, nil),
		artifactapi.Operations(nil, nil),
		tufrepoapi.Operations(nil, nil),
		rolloutapi.Operations(nil, nil),
		webhookapi.Operations(nil, nil),
		certsapi.Operations(nil, certsapi.Config{}),
		hawkbitapi.Operations(nil, nil, nil),
		originalsapi.Operations(nil, nil),
		tokenapi.Operations(nil, tokenapi.Config{}),
		accountapi.StaffOperations(nil),
		accountapi.AuditOperations(nil, nil),
	)
}
