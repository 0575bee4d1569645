// Package operations lists the operations of the public API with their parameters, bodies and answers; package describe makes its description of them.
package operations

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"kennel/cloud/updates/artifact"
	"kennel/infra/op"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
)

// Operation describes one route.
type Operation struct {
	Route    string // as package access calls it
	Tag      string
	Summary  string
	Commands []op.Command // of kennelctl
	Query    []Parameter
	Body     any // of the request, as Go has it; nil: none
	Answer   any // of a good answer; nil: none, 204
	Status   int // of it; 0: 200, or 204 without an Answer
	// Also are further good answers: status and what it holds.
	Also map[int]any
	// Media of a body or an answer that is no JSON.
	BodyMedia, AnswerMedia string
}

// Parameter is one of a query.
type Parameter struct {
	Name, About string
	Schema      map[string]any
}

var text = map[string]any{"type": "string"}

func oneOf(words ...string) map[string]any { return map[string]any{"type": "string", "enum": words} }

// Health says whether the parts can be reached.
type Health struct {
	Postgres    bool             `json:"postgres"`
	Broker      bool             `json:"broker"`
	Uplink      bool             `json:"uplink"`                       // robots' messages come in; parts says how many wait
	Disk        bool             `json:"disk"`                         // false: a volume is full
	Revocations bool             `json:"revocations"`                  // the list of revoked identities was read
	Metadata    bool             `json:"release_metadata"`             // what vouches for releases can be read
	Migrations  bool             `json:"migrations"`                   // the database has what this version needs
	API         bool             `json:"api_certificate"`              // the API's certificate is renewed
	Robots      bool             `json:"robots_certificate,omitempty"` // and the one for original robots
	ACME        bool             `json:"acme,omitempty"`               // certificates come by ACME
	Speech      bool             `json:"speech"`                       // true: a process works without a recogniser, and says in parts which one is down
	Parts       []telemetry.Part `json:"parts,omitempty"`              // for operators: which servers are used, what is wrong with which part, since when, and what to do
}

// PathParameter describes a parameter of routes.
func PathParameter(name string) Parameter {
	if p, ok := parameters[name]; ok {
		return Parameter{name, p.About, p.Schema}
	}
	return Parameter{name, "Id of " + name + ", as lists show it.", text}
}

var parameters = map[string]struct {
	About  string
	Schema map[string]any
}{
	"thing":   {"Id of a thing, such as vic:00e20100.", map[string]any{"type": "string", "pattern": thing.Pattern}},
	"doc":     {"Name of a document, such as vic.RobotSettings.", text},
	"action":  {"What to do.", oneOf("approve", "pause", "resume", "release", "abort", "rollback", "retry")},
	"log":     {"Id of a log.", text},
	"crash":   {"Id of a crash.", text},
	"group":   {"Id of a group of crashes.", text},
	"debug":   {"Debug id of a symbol file.", text},
	"clip":    {"Name of a recording, as the list says it.", text},
	"id":      {"Id, as lists show it.", text},
	"session": {"Id of a session.", text},
	"token":   {"Id of an access token.", text},
	"app":     {"Id of an app.", text},
	"batch":   {"Name of a batch.", text},
	"species": {"Species of things.", oneOf(strings.Split(thing.SpeciesWords(" "), " ")...)},
	"cohort":  {"Name of a cohort.", text},
	"key":     {"Key of an experiment.", text},
	"channel": {"Channel of releases.", oneOf(artifact.Channels...)},
	"version": {"Version of a release.", text},
	"sum":     {"SHA-256 of an archive.", map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$"}},
	"service": {"Service, as requests over MQTT name it.", text},
	"method":  {"Method of the service.", text},
	"file":    {"Name of a list.", text},
	"name":    {"Name of a file.", text},
}

// Tags returns the groups of operations, in the order of the page; those that no order is known of come last.
func Tags(all []Operation) []string {
	out := slices.Clone(tags)
	for _, o := range all {
		if !slices.Contains(out, o.Tag) {
			out = append(out, o.Tag)
		}
	}
	return out
}

var tags = []string{"Session", "Account", "Own robots", "Fleet", "Cohorts", "Alerts", "Bulk jobs", "Documents", "Commands", "Crashes", "Voice", "Logs", "Events", "Releases",
	"Webhooks", "Identity", "Staff", "Robots", "Cloud"}

// All returns the operations of the public API, of which these are declared.
func All(declared op.List) []Operation {
	out := slices.Clone(listed)
	for _, o := range declared {
		if !o.Served() {
			continue
		}
		d := Operation{Route: o.Route, Tag: o.Tag, Summary: o.Summary, Commands: o.Commands, Status: o.Status, Also: o.Also, BodyMedia: o.BodyMedia, AnswerMedia: o.AnswerMedia}
		for _, q := range o.Query {
			d.Query = append(d.Query, Parameter{q.Name, q.About, q.Schema})
		}
		if o.Body != nil {
			d.Body = reflect.Zero(o.Body).Interface()
		}
		if o.Answer != nil {
			d.Answer = reflect.Zero(o.Answer).Interface()
		}
		out = append(out, d)
	}
	order := Tags(out)
	slices.SortStableFunc(out, func(a, b Operation) int { return cmp.Compare(slices.Index(order, a.Tag), slices.Index(order, b.Tag)) })
	return out
}

// listed are those that are no endpoints: what robots send by their certificates, and what is read as it lies there.
var listed = []Operation{
	{Route: "POST /v1/req/{service}/{method}", Tag: "Robots", Summary: "Send a request that is too large for MQTT. The answer is the service's.", BodyMedia: "application/octet-stream", AnswerMedia: "application/octet-stream"},
	{Route: "PUT /v1/files/logs/{name}", Tag: "Robots", Summary: "Upload a log. 200 means it is stored.", BodyMedia: "application/octet-stream", Status: http.StatusOK},
	{Route: "POST /v1/files/crash", Tag: "Robots", Summary: "Upload a crash as original robots do. 200 means it is stored.", BodyMedia: "multipart/form-data", AnswerMedia: "application/json"},
	{Route: "GET /v1/crl/{file}", Tag: "Robots", Summary: "Download a certificate revocation list.", AnswerMedia: "application/pkix-crl"},
	{Route: "GET /v1/health", Tag: "Cloud", Summary: "Check whether this process is healthy.", Answer: Health{}, Also: map[int]any{http.StatusServiceUnavailable: Health{}}},
	{Route: "GET /v1/openapi.json", Tag: "Cloud", Summary: "Download this API description.", AnswerMedia: "application/openapi+json"},
}
