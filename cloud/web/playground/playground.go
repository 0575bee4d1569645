// Package playground serves a page on which people compile and run scripts in Pawn, the language of Pleo, in their browser. The server only hands out files; no
// script leaves the browser.
//
// The compiler and machine are cmd/playground, built for WebAssembly by make into the folder built. A server that was built without them shows a page that says so.
package playground

import (
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"path"
	"strings"

	"kennel/infra/kit/kithttp"
)

//go:embed site built
var files embed.FS

// policy permits what compiles WebAssembly, and nothing else from elsewhere.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kinds are the files that are served.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".wasm": "application/wasm"}

// module is the compiler and machine, which is kept compressed.
const module = "playground.wasm"

// Mount adds the page and its files.
func Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /playground", func(w http.ResponseWriter, r *http.Request) { serve(w, r, "site/index.html") })
	mux.HandleFunc("GET /playground/{file}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		switch {
		case name == module:
			serveModule(w, r)
		case name == "wasm_exec.js":
			serve(w, r, "built/"+name)
		default:
			serve(w, r, "site/"+name)
		}
	})
}

// serve answers with a file.
func serve(w http.ResponseWriter, r *http.Request, name string) {
	kind := kinds[path.Ext(name)]
	text, err := files.ReadFile(name)
	if err != nil || kind == "" {
		http.NotFound(w, r)
		return
	}
	head(w, kind)
	_, _ = w.Write(text) // a browser that is gone hears nothing
}

func head(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
}

// serveModule answers with the module, compressed for a browser that takes that.
func serveModule(w http.ResponseWriter, r *http.Request) {
	f, err := files.Open("built/" + module + ".gz")
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close() // read only
	head(w, kinds[".wasm"])
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.Copy(w, f) // likewise
		return
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	_, _ = io.Copy(w, z) // likewise
}
