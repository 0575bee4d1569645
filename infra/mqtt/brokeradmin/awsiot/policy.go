package awsiot

import (
	"encoding/json"
	"strings"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Account says where in AWS resources are.
type Account struct {
	Partition string // "": aws
	Region    string
	ID        string // twelve digits
}

func (a Account) validate() error {
	if a.Region == "" || len(a.ID) != 12 || strings.Trim(a.ID, "0123456789") != "" {
		return errs.New(errs.Invalid, "aws account %q in region %q: want twelve digits and a region", a.ID, a.Region)
	}
	return nil
}

func (a Account) arn(resource string) string {
	p := a.Partition
	if p == "" {
		p = "aws"
	}
	return "arn:" + p + ":iot:" + a.Region + ":" + a.ID + ":" + resource
}

type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Effect    string
	Action    string
	Resource  []string
	Condition map[string]map[string]string `json:",omitempty"`
}

// ThingPolicy returns the AWS IoT policy that every thing's certificate gets (VEC-FLE-01). The thing in AWS's registry has the thing id as
// its name, and the certificate is attached to it; the policy variable is then that name. There is no iot:RetainPublish: a thing retains
// nothing. In a policy + is an ordinary character, and * matches any text.
func ThingPolicy(a Account) ([]byte, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	const me thing.ID = "${iot:Connection.Thing.ThingName}"
	p := policy{Version: "2012-10-17", Statement: []statement{
		{Effect: "Allow", Action: "iot:Connect", Resource: []string{a.arn("client/" + string(me))},
			Condition: map[string]map[string]string{"Bool": {"iot:Connection.Thing.IsAttached": "true"}}},
		{
			Effect: "Allow", Action: "iot:Publish",
			Resource: []string{a.arn("topic/" + topics.UpTopic(me, "*")), a.arn("topic/" + topics.ReqTopic(me, "*", "*"))},
		},
		{
			Effect: "Allow", Action: "iot:Receive",
			Resource: []string{a.arn("topic/" + topics.DownTopic(me, "*")), a.arn("topic/" + topics.ResTopic(me, "*"))},
		},
		{Effect: "Allow", Action: "iot:Subscribe"},
	}}
	for _, f := range topics.ThingFilters(me) {
		p.Statement[3].Resource = append(p.Statement[3].Resource, a.arn("topicfilter/"+f))
	}
	return json.MarshalIndent(p, "", "  ")
}

// ServicePolicy returns the AWS IoT policy of the certificates of the cloud's processes.
func ServicePolicy(a Account) ([]byte, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	p := policy{Version: "2012-10-17", Statement: []statement{
		{Effect: "Allow", Action: "iot:Connect", Resource: []string{a.arn("client/kenneld-*")}},
		{
			Effect: "Allow", Action: "iot:Publish",
			Resource: []string{a.arn("topic/" + topics.DownTopic("*", "*")), a.arn("topic/" + topics.ResTopic("*", "*"))},
		},
		{Effect: "Allow", Action: "iot:RetainPublish", Resource: []string{a.arn("topic/" + topics.DownTopic("*", "*"))}},
		{
			Effect: "Allow", Action: "iot:Receive",
			Resource: []string{a.arn("topic/" + topics.UpTopic("*", "*")), a.arn("topic/" + topics.ReqTopic("*", "*", "*"))},
		},
		{Effect: "Allow", Action: "iot:Subscribe"},
	}}
	for _, f := range topics.CloudFilters() {
		p.Statement[4].Resource = append(p.Statement[4].Resource, a.arn("topicfilter/"+f))
	}
	return json.MarshalIndent(p, "", "  ")
}

// Rule is the payload of CreateTopicRule.
type Rule struct {
	SQL        string       `json:"sql"`
	Version    string       `json:"awsIotSqlVersion"`
	Actions    []RuleAction `json:"actions"`
	Purpose    string       `json:"description"`
	IsDisabled bool         `json:"ruleDisabled"`
}

// RuleAction writes to a queue.
type RuleAction struct {
	SQS struct {
		QueueURL  string `json:"queueUrl"`
		RoleARN   string `json:"roleArn"`
		UseBase64 bool   `json:"useBase64"`
	} `json:"sqs"`
}

// Rules returns the topic rules that put the fleet's uplink into a queue, in the form that infra/queue reads. role may send to that queue.
func Rules(queueURL, role string) ([]byte, error) {
	if !strings.HasPrefix(queueURL, "https://") || !strings.HasPrefix(role, "arn:") {
		return nil, errs.New(errs.Invalid, "queue %q and role %q: want https://… and arn:…", queueURL, role)
	}
	var out []Rule
	for _, f := range topics.CloudFilters() {
		_, filter, _ := strings.Cut(strings.TrimPrefix(f, "$share/"), "/") // rules need no share: each message is processed once
		r := Rule{SQL: "SELECT topic() AS topic, encode(*, 'base64') AS payload FROM '" + filter + "'", Version: "2016-03-23",
			Purpose: "Kennel uplink " + filter,
			Actions: make([]RuleAction, 1)}
		r.Actions[0].SQS.QueueURL, r.Actions[0].SQS.RoleARN = queueURL, role
		out = append(out, r)
	}
	return json.MarshalIndent(out, "", "  ")
}
