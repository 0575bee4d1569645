// Package scratch serves the robot's own page: what it is, sees and measures, buttons that drive it, and a console for one line at a time. The page is a client
// of the gateway like any other: it asks for a program's token and has that token's rights.
package scratch

import (
	_ "embed"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"kennel/sdk/js"
)

//go:embed index.html
var index []byte

//go:embed scratch.mjs
var script []byte

//go:embed scratch.css
var style []byte

// partDir is where the part of a species is below the page.
const partDir = "/part/"

// noPart is the module of a species without a part of its own.
const noPart = "export default () => null;\n"

// Routes returns what the page consists of, by pattern of http.ServeMux. part are the files of the species' part (species.Species.Page); nil: it has none.
func Routes(part fs.FS) map[string]http.Handler {
	out := map[string]http.Handler{}
	for path, f := range map[string]struct {
		kind string
		text []byte
	}{
		"/{$}": {"text/html", index}, "/scratch.mjs": {"text/javascript", script}, "/scratch.css": {"text/css", style}, "/kennel.mjs": {"text/javascript", js.Client},
	} {
		out["GET "+path] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { send(w, f.kind, f.text) })
	}
	out["GET "+partDir] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, partDir)
		kind := kinds[path.Ext(name)]
		if part == nil && name == "part.mjs" {
			send(w, kind, []byte(noPart))
			return
		}
		if part == nil || kind == "" {
			http.NotFound(w, r)
			return
		}
		text, err := fs.ReadFile(part, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		send(w, kind, text)
	})
	return out
}

// kinds are the files that a part may have.
var kinds = map[string]string{".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

// send answers with a file of the page.
func send(w http.ResponseWriter, kind string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", kind+"; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // a browser that is gone hears nothing
}
