package ctl

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/openapi"
	"kennel/infra/cli"
)

// TestMCP: a language model reads with the person's rights, changes only what -allow names, and reads why something was refused.
func TestMCP(t *testing.T) {
	svc, _, dir := newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, _ *pgxpool.Pool) {
		if err := openapi.Mount(mux); err != nil {
			t.Fatal(err)
		}
	})
	connect := func(allow ...string) *mcp.ClientSession {
		t.Helper()
		a := &app{onebox: dir}
		a.api, a.stranger = caller(a.connect), caller(a.connectUnknown)
		s, err := a.mcpServer(t.Context(), allow)
		if err != nil {
			t.Fatal(err)
		}
		here, there := mcp.NewInMemoryTransports()
		if _, err := s.Connect(t.Context(), there, nil); err != nil {
			t.Fatal(err)
		}
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	call := func(c *mcp.ClientSession, tool string, args any) (text string, refused bool) {
		t.Helper()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return err.Error(), true
		}
		return r.Content[0].(*mcp.TextContent).Text, r.IsError
	}
	person := map[string]any{"body": map[string]any{"email": "grace@example.org", "role": "viewer"}}
	reader := connect()
	tools, err := reader.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s changes something, which nothing allowed", tool.Name)
		}
	}
	for name := range mcpReads {
		at := slices.IndexFunc(tools.Tools, func(x *mcp.Tool) bool { return x.Name == name })
		if at < 0 || tools.Tools[at].Description == "" {
			t.Errorf("no tool %s, or nothing says what it does", name)
		}
	}
	if _, refused := call(reader, "postOperators", person); !refused {
		t.Error("an operator was made without -allow")
	}
	if text, refused := call(reader, "get", map[string]any{"path": "/v1/audit", "query": map[string]string{"limit": "1"}}); refused || !strings.Contains(text, `"data"`) {
		t.Errorf("the log: %s", text)
	}
	if text, refused := call(reader, "operations", map[string]any{"word": "/v1/audit"}); refused || !strings.Contains(text, "/v1/audit") {
		t.Errorf("operations: %s", text)
	}
	for tool, args := range map[string]any{"get": map[string]any{"path": "/v1/nothing"}, "things_show": map[string]any{}, "things": map[string]any{"nothing": 1},
		"things_doctor": map[string]any{"thing": "vic:00e20100"}} { // that last is not served here
		if text, refused := call(reader, tool, args); !refused {
			t.Errorf("%s %v: %s, want a refusal", tool, args, text)
		}
	}

	writer := connect("post /v1/operators")
	if text, refused := call(writer, "postOperators", person); refused || !strings.Contains(text, "password") {
		t.Errorf("an operator: %s", text)
	}
	if text, refused := call(writer, "postOperators", person); !refused || strings.Contains(text, "password") {
		t.Errorf("the same operator: %s", text)
	}
	log, err := svc.Audit.Lines(t.Context(), 0, 10)
	if b, _ := json.Marshal(log); err != nil || !strings.Contains(string(b), "grace@example.org") {
		t.Errorf("the log of changes: %v %s", err, b)
	}
	want(t, dir, "", cli.ExitNotFound, "no operation", "mcp", "-allow", "POST /v1/nothing")

	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		root := Command()
		root.SetIn(in)
		ended <- cli.Run(t.Context(), root, []string{"-onebox", dir, "mcp"}, func(string) string { return "" }, out, io.Discard)
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, refused := call(c, "get", map[string]any{"path": "/v1/me"}); refused || !strings.Contains(text, "op@example.org") {
		t.Errorf("over standard input and output: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
}

// FuzzMCPInput: whatever the description of an API says, the schema of a tool's arguments is JSON and ends.
func FuzzMCPInput(f *testing.F) {
	f.Add(`{"paths":{"/a":{"get":{"operationId":"x","parameters":[{"name":"p","in":"query","schema":{"type":"string"}}]}}}}`)
	f.Add(`{"paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},"components":{"schemas":{"A":{"x":{"$ref":"#/components/schemas/A"}}}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		var d description
		if len(raw) > 2000 || json.Unmarshal([]byte(raw), &d) != nil {
			return
		}
		for _, methods := range d.Paths {
			for _, o := range methods {
				if _, err := json.Marshal(d.input(o)); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
