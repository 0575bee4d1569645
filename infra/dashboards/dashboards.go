// Package dashboards carries what an operator's Grafana and Prometheus load: one dashboard a file (fleet, ingest, broker, Postgres, API) and
// the alert rules. Import the JSON files into Grafana or let it provision this folder; name alerts.yml under rule_files in Prometheus, which
// scrapes metrics.listen of every kenneld as the job "kenneld". Tests hold every metric named here against those that a wired process
// really exports.
package dashboards

import "embed"

// FS holds the dashboards as NAME.json, and alerts.yml.
//
//go:embed *.json alerts.yml
var FS embed.FS
