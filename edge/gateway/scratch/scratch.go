// Package scratch serves the robot's own page: what it is, sees and measures, buttons that drive it, and a console for one line at a time. The page is a client
// of the gateway like any other: it asks for a program's token and has that token's rights.
package scratch

import (
	_ "embed"
	"net/http"

	"kennel/sdk/js"
)

//go:embed index.html
var index []byte

//go:embed scratch.mjs
var script []byte

//go:embed scratch.css
var style []byte

// Routes returns what the page consists of, by pattern of http.ServeMux.
func Routes() map[string]http.Handler {
	out := map[string]http.Handler{}
	for path, f := range map[string]struct {
		kind string
		text []byte
	}{
		"/{$}": {"text/html", index}, "/scratch.mjs": {"text/javascript", script}, "/scratch.css": {"text/css", style}, "/kennel.mjs": {"text/javascript", js.Client},
	} {
		out["GET "+path] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", f.kind+"; charset=utf-8")
			h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-cache")
			_, _ = w.Write(f.text) // a browser that is gone hears nothing
		})
	}
	return out
}
