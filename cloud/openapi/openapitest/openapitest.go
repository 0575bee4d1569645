// Package openapitest holds real answers against the description of the public API.
package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"kennel/cloud/openapi"
)

// Load returns the description, with nothing in answers that it does not name.
var Load = sync.OnceValues(func() (*openapi3.T, error) {
	var doc any
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		return nil, err
	}
	closeObjects(doc)
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(b)
})

// closeObjects refuses fields without a description in every object that has some with one.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, has := v["properties"].(map[string]any); has && v["additionalProperties"] == nil && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, x := range v {
			closeObjects(x)
		}
	case []any:
		for _, x := range v {
			closeObjects(x)
		}
	}
}

// mux finds the route of a request as the server does.
var mux = sync.OnceValues(func() (*http.ServeMux, error) {
	doc, err := Load()
	if err != nil {
		return nil, err
	}
	m := http.NewServeMux()
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			m.Handle(method+" "+path, http.NotFoundHandler())
		}
	}
	return m, nil
})

// visiting is held while a schema is used: schemas compile themselves then.
var visiting sync.Mutex

// Check returns what is wrong with an answer by the description; nil for requests of other paths. An error of the door that no operation was
// found is not judged.
func Check(method, path string, status int, contentType string, body []byte) error {
	if !strings.HasPrefix(path, "/v1/") {
		return nil
	}
	doc, err := Load()
	if err != nil {
		return err
	}
	m, err := mux()
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, path, nil)
	if err != nil {
		return err
	}
	_, pattern := m.Handler(req)
	if pattern == "" {
		if status < 300 {
			return fmt.Errorf("%s %s answered %d and is not described", method, path, status)
		}
		return nil
	}
	_, route, _ := strings.Cut(pattern, " ")
	if method == http.MethodHead {
		return nil
	}
	answer := doc.Paths.Find(route).GetOperation(method).Responses
	resp := answer.Value(strconv.Itoa(status))
	if resp == nil && status >= 400 {
		resp = answer.Default()
	}
	if resp == nil || resp.Value == nil {
		return fmt.Errorf("%s answered %d, which is not described", pattern, status)
	}
	if len(resp.Value.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s answered %d with %d bytes, and none are described: %.200s", pattern, status, len(body), body)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("%s answered %d with content type %q: %w", pattern, status, contentType, err)
	}
	content := resp.Value.Content[media]
	if content == nil {
		return fmt.Errorf("%s answered %d as %s, which is not described", pattern, status, media)
	}
	if content.Schema == nil {
		return nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("%s answered %d with a body that is not JSON: %w", pattern, status, err)
	}
	visiting.Lock()
	defer visiting.Unlock()
	if err := content.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.MultiErrors()); err != nil {
		return fmt.Errorf("%s answered %d: %w in %.400s", pattern, status, err, body)
	}
	return nil
}
