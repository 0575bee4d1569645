package clientgen

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"kennel/cloud/openapi"
	"kennel/cloud/openapi/client"
	"kennel/infra/errs"
)

// TestCurrent: the client was generated from the description of today.
func TestCurrent(t *testing.T) {
	want, err := Write(openapi.JSON)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../client/client.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("cloud/openapi/client/client.go is old; run make generate")
	}
}

// TestRequests: what methods send, and what they make of answers.
func TestRequests(t *testing.T) {
	var sent string
	var body any
	answer, head := "", http.Header{}
	c := client.Client{Do: func(_ context.Context, method, path string, in any) ([]byte, http.Header, error) {
		sent, body = method+" "+path, in
		return []byte(answer), head, nil
	}}
	answer = `[{"at":"2026-05-06T12:00:00Z","present":true,"new_in_the_next_release":1}]`
	head.Set("Link", `</v1/things/vic:1/history?after=a%20b&limit=2>; rel="next"`)
	history, err := c.GetThingsThingHistory(t.Context(), "vic:1/..?", client.GetThingsThingHistoryQuery{Limit: new(int64(2))})
	if err != nil || len(history.Value) != 1 || !history.Value[0].Present || history.After != "a b" || string(history.Raw) != answer ||
		sent != "GET /v1/things/vic:1%2F..%3F/history?limit=2" || body != nil {
		t.Errorf("%+v, %v; sent %s %v", history, err, sent, body)
	}
	if _, err := c.GetThingsThingHistory(t.Context(), "vic:1", client.GetThingsThingHistoryQuery{}); err != nil || sent != "GET /v1/things/vic:1/history" {
		t.Errorf("without a query: %v; sent %s", err, sent)
	}
	answer, head = "", http.Header{}
	if r, err := c.PatchOperatorsID(t.Context(), "u-1", client.OperatorChange{Disabled: new(false)}); err != nil || r.Raw != nil || sent != "PATCH /v1/operators/u-1" {
		t.Errorf("%+v, %v; sent %s", r, err, sent)
	} else if b, err := json.Marshal(body); err != nil || string(b) != `{"disabled":false}` {
		t.Errorf("sent %s, %v", b, err)
	}
	answer = `{"present":"many"}`
	if r, err := c.GetFleet(t.Context()); errs.KindOf(err) != errs.Corrupt || string(r.Raw) != answer {
		t.Errorf("%+v, %v; want the answer and that it is another one", r, err)
	}
}

// TestWrite: types and operations of a small description.
func TestWrite(t *testing.T) {
	src, err := Write([]byte(`{"paths": {
		"/v1/cats/{id}": {"put": {"operationId": "putCatsId", "summary": "Change a cat.", "parameters": [{"name": "id", "in": "path"}],
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Cat"}}}}, "responses": {"204": {}}}},
		"/v1/cats.zip": {"get": {"operationId": "getCatsZip", "responses": {"200": {"content": {"application/zip": {}}}}}}},
		"components": {"schemas": {"Cat": {"description": "Cat is one.", "required": ["paws"], "properties": {"paws": {"type": "integer"}, "friend": {"$ref": "#/components/schemas/Cat"},
			"born": {"type": "string", "format": "date-time"}, "name": {"type": ["string", "null"], "description": "for people"}, "more": true,
			"toys": {"type": "array", "items": {"type": "number"}}, "marks": {"type": "object", "additionalProperties": {"type": "boolean"}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(string(src)), " ")
	for _, want := range []string{
		"// PutCatsID is PUT /v1/cats/{id}: Change a cat. func (c Client) PutCatsID(ctx context.Context, id string, in Cat) (Reply[None], error) {" +
			` return ask[None](ctx, c, "PUT", "/v1/cats/"+url.PathEscape(id), in) }`,
		"// Cat is one. type Cat struct { Born time.Time `json:\"born,omitzero\"` Friend *Cat `json:\"friend,omitzero\"` Marks map[string]bool `json:\"marks,omitzero\"`" +
			" More json.RawMessage `json:\"more,omitzero\"` Name *string `json:\"name,omitzero\"` // for people Paws int64 `json:\"paws\"` Toys []float64 `json:\"toys,omitzero\"` }",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, src)
		}
	}
	if strings.Contains(got, "Zip") {
		t.Error("a method for an answer that is no JSON")
	}
}
