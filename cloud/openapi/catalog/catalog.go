// Package catalog lists the operations of all slices, without the services that they call: what the description of the API and the access table are made of.
package catalog

import (
	"slices"

	"kennel/certs/certsapi"
	"kennel/cloud/fleet/bulk/bulkapi"
	"kennel/cloud/fleet/cohort/cohortapi"
	"kennel/cloud/fleet/command/commandapi"
	"kennel/cloud/fleet/liveview/liveviewapi"
	"kennel/cloud/fleet/registry/registryapi"
	"kennel/cloud/fleet/webhook/webhookapi"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/owner/ownerapi"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/originals/door/doorapi"
	"kennel/cloud/originals/originalsapi"
	"kennel/cloud/preflight/preflightapi"
	"kennel/cloud/telemetry/alert/alertapi"
	"kennel/cloud/telemetry/crash/crashapi"
	"kennel/cloud/telemetry/das/dasapi"
	"kennel/cloud/telemetry/health/healthapi"
	"kennel/cloud/telemetry/uploads/uploadsapi"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/hawkbit/hawkbitapi"
	"kennel/cloud/updates/rollout/rolloutapi"
	"kennel/cloud/updates/tufrepo/tufrepoapi"
	"kennel/cloud/voice/intents/intentsapi"
	"kennel/cloud/voice/voice/voiceapi"
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
